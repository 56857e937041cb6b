//! TLS of a listener: what it shows to callers, and whom it lets in.

use std::sync::Arc;

use rustls::{
    ServerConfig,
    crypto::ring,
    server::{WebPkiClientVerifier, danger::ClientCertVerifier},
    sign::SingleCertAndKey,
};

use super::{FileError, files};

/// The files, in PEM and named by absolute paths, which may be replaced while the service runs.
#[derive(Clone, Debug)]
pub struct ServerTls {
    /// The configuration's field, for errors: `tls` or `admin.tls`.
    pub(super) field: &'static str,
    /// The certificate, and what is between it and an authority (`cert_file`).
    pub cert_file: String,
    /// Its private key (`key_file`).
    pub key_file: String,
    /// The authorities that callers need a certificate of (`client_ca_file`); without, they need none.
    pub client_ca_file: Option<String>,
}

/// What is wrong with the files.
#[derive(Debug, thiserror::Error)]
#[error("{field}.{part}: {error}")]
pub struct ServerTlsError {
    field: &'static str,
    /// The field of `field` that is at fault.
    pub(super) part: &'static str,
    /// What is wrong with its file.
    pub(super) error: FileError,
}

impl ServerTls {
    /// The files as they are now, ready to speak HTTP/2 and HTTP/1.1.
    ///
    /// # Errors
    /// When one can't be read or used, or they don't belong together.
    pub fn load(&self) -> Result<ServerConfig, ServerTlsError> {
        let fault = |part| move |error| ServerTlsError { field: self.field, part, error };
        let (_, certificates) = files::certificates(&self.cert_file).map_err(fault("cert_file"))?;
        let (_, key) = files::private_key(&self.key_file).map_err(fault("key_file"))?;
        let cert_field = format!("{}.cert_file", self.field);
        let key = files::together(certificates, key, &cert_field).map_err(fault("key_file"))?;
        let clients = self.clients().map_err(fault("client_ca_file"))?;
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| fault("cert_file")(FileError::Unusable(Box::new(error))))?;
        let mut config =
            builder.with_client_cert_verifier(clients).with_cert_resolver(Arc::new(SingleCertAndKey::from(key)));
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }

    /// All files that [`ServerTls::load`] reads.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        [&self.cert_file, &self.key_file].into_iter().chain(&self.client_ca_file).map(String::as_str)
    }

    fn clients(&self) -> Result<Arc<dyn ClientCertVerifier>, FileError> {
        let Some(file) = &self.client_ca_file else { return Ok(WebPkiClientVerifier::no_client_auth()) };
        let (_, roots) = files::authorities(file)?;
        let provider = Arc::new(ring::default_provider());
        // There is at least one authority, and no revocation list that could be bad.
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|error| FileError::Unusable(Box::new(rustls::Error::General(error.to_string()))))
    }
}
