//! TLS to the store: the files that its fields name are good, and good together.

use crate::config::spanned::Spanned;

use super::{Identity, Secret, Tls, check::Checker, files, raw::RawTls, store_url::StoreUrl};

const CA_FILE: &str = "store.tls.ca_file";
const CERT_FILE: &str = "store.tls.cert_file";
const KEY_FILE: &str = "store.tls.key_file";

impl Checker<'_> {
    /// The inner option is whether TLS is spoken, the outer one whether its settings are good.
    pub(super) fn tls(&mut self, raw: Option<&Spanned<RawTls>>, url: Option<&StoreUrl>) -> Option<Option<Tls>> {
        let Some(raw) = raw else { return Some(url.is_some_and(|url| url.tls).then(Tls::default)) };
        if url.is_some_and(|url| !url.tls) {
            let reason =
                "store.url has no TLS; leave this out, or use rediss://, rediss+sentinel:// or rediss+cluster://";
            return self.fault("store.tls", raw, reason);
        }
        let RawTls { ca_file, cert_file, key_file } = &raw.value;
        let ca_pem = match ca_file {
            None => Some(None),
            Some(field) => self.file(CA_FILE, field, files::authorities).map(|(pem, _)| Some(pem)),
        };
        let identity = self.identity(cert_file.as_ref(), key_file.as_ref());
        Some(Some(Tls { ca_pem: ca_pem?, identity: identity? }))
    }

    fn identity(
        &mut self,
        cert_file: Option<&Spanned<String>>,
        key_file: Option<&Spanned<String>>,
    ) -> Option<Option<Identity>> {
        let (cert_field, key_field) = match (cert_file, key_file) {
            (None, None) => return Some(None),
            (Some(cert), None) => {
                return self.fault(CERT_FILE, cert, format!("is nothing without its private key; add {KEY_FILE}"));
            }
            (None, Some(key)) => {
                return self.fault(KEY_FILE, key, format!("is nothing without its certificate; add {CERT_FILE}"));
            }
            (Some(cert), Some(key)) => (cert, key),
        };
        let certificate = self.file(CERT_FILE, cert_field, files::certificates);
        let key = self.file(KEY_FILE, key_field, files::private_key);
        let ((certificate_pem, certificates), (key_pem, key)) = (certificate?, key?);
        self.good(KEY_FILE, key_field, files::together(certificates, key, CERT_FILE))?;
        Some(Some(Identity { certificate_pem, key_pem: Secret::new(key_pem) }))
    }

    fn file<T>(
        &mut self,
        path: &str,
        field: &Spanned<String>,
        read: impl Fn(&str) -> Result<T, files::FileError>,
    ) -> Option<T> {
        let file = self.not_empty(path, field)?;
        self.good(path, field, read(&file))
    }
}
