//! A certificate authority of the test's own.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Result;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    SanType,
};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use tokio_rustls::rustls::pki_types::{CertificateDer, pem::PemObject as _};

/// An authority, and a server's and a client's certificate by it, as PEM files that are deleted on drop. Two of these
/// don't trust each other.
#[derive(Debug)]
pub struct Certificates {
    directory: TempDir,
}

impl Certificates {
    /// New ones. The server's is for `localhost` and 127.0.0.1, the client's for `client.test` and
    /// `spiffe://test/client`.
    ///
    /// # Errors
    /// When they can't be made or written.
    pub fn generate() -> Result<Self> {
        let certificates = Self { directory: tempfile::tempdir()? };
        let mut authority = CertificateParams::default();
        authority.distinguished_name.push(DnType::CommonName, "Test authority");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate()?;
        fs::write(certificates.authority(), authority.self_signed(&key)?.pem())?;
        let issuer = Issuer::new(authority, key);

        let leaves = [
            ("server", ExtendedKeyUsagePurpose::ServerAuth, &["localhost", "127.0.0.1"][..]),
            ("client", ExtendedKeyUsagePurpose::ClientAuth, &["client.test"]),
        ];
        for (name, purpose, subjects) in leaves {
            let mut leaf = CertificateParams::new(subjects.iter().copied().map(str::to_owned).collect::<Vec<_>>())?;
            if name == "client" {
                leaf.subject_alt_names.push(SanType::URI("spiffe://test/client".try_into()?));
            }
            leaf.distinguished_name.push(DnType::CommonName, name);
            leaf.extended_key_usages = vec![purpose];
            let key = KeyPair::generate()?;
            fs::write(certificates.file(&format!("{name}.pem")), leaf.signed_by(&key, &issuer)?.pem())?;
            fs::write(certificates.file(&format!("{name}.key")), key.serialize_pem())?;
        }
        Ok(certificates)
    }

    /// The authority's certificate.
    #[must_use]
    pub fn authority(&self) -> PathBuf {
        self.file("authority.pem")
    }

    /// The server's certificate and its key.
    #[must_use]
    pub fn server(&self) -> (PathBuf, PathBuf) {
        (self.file("server.pem"), self.file("server.key"))
    }

    /// The client's certificate and its key.
    #[must_use]
    pub fn client(&self) -> (PathBuf, PathBuf) {
        (self.file("client.pem"), self.file("client.key"))
    }

    /// SHA-256 of the client's certificate, in hex.
    ///
    /// # Errors
    /// When it can't be read.
    pub fn client_sha256(&self) -> Result<String> {
        let certificate = CertificateDer::from_pem_file(self.client().0)?;
        Ok(Sha256::digest(&certificate).iter().map(|byte| format!("{byte:02x}")).collect())
    }

    fn file(&self, name: &str) -> PathBuf {
        Path::new(self.directory.path()).join(name)
    }
}
