//! The files that the store's fields name.

use std::{fs, path::PathBuf};

use rcgen::{CertificateParams, CertifiedIssuer, KeyPair};
use tempfile::TempDir;

use super::{
    check_settings,
    store::{check_login, store},
};

/// A folder of files to name: a CA, a certificate that it made, and what is wrong with others.
pub(super) struct Files(TempDir);

impl Files {
    pub(super) fn new() -> Self {
        let files = Self(TempDir::new().unwrap());
        let key = || KeyPair::generate().unwrap();
        let ca = CertifiedIssuer::self_signed(CertificateParams::default(), key()).unwrap();
        let client = key();
        let certificate = CertificateParams::default().signed_by(&client, &ca).unwrap();
        files.write("ca.pem", ca.pem());
        files.write("client.pem", format!("{}{}", certificate.pem(), ca.pem()));
        files.write("client.key", client.serialize_pem());
        files.write("other.key", key().serialize_pem());
        files.write("broken.pem", "-----BEGIN CERTIFICATE-----\nhunter2!\n-----END CERTIFICATE-----\n");
        files.write("fake.pem", "-----BEGIN CERTIFICATE-----\naHVudGVyMg==\n-----END CERTIFICATE-----\n");
        files.write("broken.key", "-----BEGIN PRIVATE KEY-----\nhunter2!\n-----END PRIVATE KEY-----\n");
        files.write("fake.key", "-----BEGIN PRIVATE KEY-----\naHVudGVyMg==\n-----END PRIVATE KEY-----\n");
        files.write("tokens", "\n hunter2 \nhunter3\r\n\n");
        files.write("no tokens", "\n \n");
        files.write("two words", "hunter2\nhunter 3\n");
        files.write("password", "hunter2\r\nand a note\n");
        files.write("blank", " \nhunter2\n");
        files.write("bytes", b"hunter2\xff\n");
        files
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// With the folder's path in place of each `$` before a slash.
    pub(super) fn name(&self, text: &str) -> String {
        text.replace("$/", &format!("{}/", self.0.path().display()))
    }

    fn check(&self, marked: &str, expected: &str) {
        check_settings(&self.name(&format!("store: {{ {marked} }}")), &self.name(expected));
    }
}

#[test]
fn password_files_are_checked() {
    let files = Files::new();
    let good = store(&files.name("url: redis://h, password_file: $/password"));
    check_login(good.login.as_ref(), None, "hunter2");
    files.check(
        "url: redis://h, password_file: ^$/gone",
        "store.password_file: $/gone: can't be read: No such file or directory (os error 2)",
    );
    files.check(
        "url: redis://h, password_file: ^$/bytes",
        "store.password_file: $/bytes: can't be read: stream did not contain valid UTF-8",
    );
    files.check(
        "url: redis://h, password_file: ^$/blank",
        "store.password_file: $/blank: its first line is empty; write the password there",
    );
    check_settings(
        "store: { url: redis://h, password_file: ^hunter2 }",
        "store.password_file: is not an absolute path; write the file's path from / on",
    );
}

#[test]
fn files_of_tls_are_checked() {
    let files = Files::new();
    let check = |marked: &str, expected: &str| {
        files.check(&format!("url: rediss://h, tls: {{ {marked} }}"), &format!("store.tls.{expected}"));
    };
    check("ca_file: ^$/gone", "ca_file: $/gone: can't be read: No such file or directory (os error 2)");
    check("ca_file: ^$/", "ca_file: $/: can't be read: it is no regular file");
    check("ca_file: ^ca.pem", "ca_file: is not an absolute path; write the file's path from / on");
    let none = "has no certificate in PEM, which begins with -----BEGIN CERTIFICATE-----";
    check("ca_file: ^$/client.key", &format!("ca_file: $/client.key: {none}"));
    check("cert_file: ^$/password, key_file: $/client.key", &format!("cert_file: $/password: {none}"));
    check("ca_file: ^$/broken.pem", "ca_file: $/broken.pem: its certificate 1 is not PEM; make the file anew");
    check(
        "ca_file: ^$/fake.pem",
        "ca_file: $/fake.pem: its certificate 1 can't be trusted, whoever it is from: invalid peer certificate: BadEncoding",
    );
    check("cert_file: ^$/client.pem", "cert_file: is nothing without its private key; add store.tls.key_file");
    check("key_file: ^$/client.key", "key_file: is nothing without its certificate; add store.tls.cert_file");
    for key in ["ca.pem", "broken.key"] {
        check(
            &format!("cert_file: $/client.pem, key_file: ^$/{key}"),
            &format!(
                "key_file: $/{key}: has no private key in PEM that can be read; one that is encrypted can't: decrypt it \
                 first"
            ),
        );
    }
    check(
        "cert_file: $/client.pem, key_file: ^$/other.key",
        "key_file: is not the key of the certificate in store.tls.cert_file; name two files that belong together",
    );
    check(
        "cert_file: $/client.pem, key_file: ^$/fake.key",
        "key_file: certificate and key can't be used: unexpected error: failed to parse private key as RSA, ECDSA, or \
         EdDSA",
    );
}
