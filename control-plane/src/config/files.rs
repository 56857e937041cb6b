//! Files that the configuration names: read when it is loaded, so that a bad one is a fault of the configuration.

use std::{io, path::Path};

use rustls::{
    Error, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    sign::CertifiedKey,
};

use super::{
    Secret, read_regular,
    token::{TokenError, check_token},
};

/// Why a file is of no use. None of them shows what is in it.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It may be a password where a file is meant, so it isn't shown.
    #[error("is not an absolute path; write the file's path from / on")]
    Relative,
    /// There is no such file, it can't be read, is no regular file, no text, or is too large.
    #[error("{0}: can't be read: {1}")]
    Unreadable(String, io::Error),
    /// A password is the first line.
    #[error("{0}: its first line is empty; write the password there")]
    NoPassword(String),
    /// A token is a line.
    #[error("{0}: has no token; write each on a line of its own")]
    NoToken(String),
    /// Of the line of this number.
    #[error("{0}: line {1}: {2}")]
    Token(String, usize, TokenError),
    /// Nothing in it is even meant as a certificate.
    #[error("{0}: has no certificate in PEM, which begins with -----BEGIN CERTIFICATE-----")]
    NoCertificate(String),
    /// Of the certificate of this number.
    #[error("{0}: its certificate {1} is not PEM; make the file anew")]
    Pem(String, usize),
    /// Of the certificate of this number.
    #[error("{0}: its certificate {1} can't be trusted, whoever it is from: {2}")]
    Authority(String, usize, Box<Error>),
    /// None that isn't encrypted.
    #[error("{0}: has no private key in PEM that can be read; one that is encrypted can't: decrypt it first")]
    NoKey(String),
    /// The field of the certificate.
    #[error("is not the key of the certificate in {0}; name two files that belong together")]
    OtherKey(String),
    /// For a reason of the library's.
    #[error("certificate and key can't be used: {0}")]
    Unusable(Box<Error>),
}

/// The first line of a file, without its end. In errors the file is named as `written`, which a variable may have
/// completed with what nobody should see.
pub(super) fn password(file: &str, written: &str) -> Result<Secret, FileError> {
    let text = text(file, written)?;
    match text.lines().next() {
        Some(line) if !line.trim().is_empty() => Ok(Secret::new(line)),
        _ => Err(FileError::NoPassword(written.to_owned())),
    }
}

/// The tokens of a file, at least one: each a line, and empty lines are none.
pub(super) fn tokens(file: &str, written: &str) -> Result<Vec<Secret>, FileError> {
    let text = text(file, written)?;
    let lines = (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| !line.is_empty());
    let tokens = lines.map(|(number, line)| {
        check_token(line).map_err(|error| FileError::Token(written.to_owned(), number, error))?;
        Ok(Secret::new(line))
    });
    let tokens = tokens.collect::<Result<Vec<_>, _>>()?;
    if tokens.is_empty() { Err(FileError::NoToken(written.to_owned())) } else { Ok(tokens) }
}

/// A file of certificates to trust.
pub(super) fn authorities(file: &str) -> Result<(String, RootCertStore), FileError> {
    let (pem, certificates) = certificates(file)?;
    let mut roots = RootCertStore::empty();
    for (number, certificate) in (1..).zip(certificates) {
        roots.add(certificate).map_err(|error| FileError::Authority(file.to_owned(), number, Box::new(error)))?;
    }
    Ok((pem, roots))
}

/// A file with at least one certificate.
pub(super) fn certificates(file: &str) -> Result<(String, Vec<CertificateDer<'static>>), FileError> {
    let pem = text(file, file)?;
    let mut certificates = Vec::new();
    for (number, certificate) in (1..).zip(CertificateDer::pem_slice_iter(pem.as_bytes())) {
        // The reason would show the line at fault, here and below.
        certificates.push(certificate.map_err(|_| FileError::Pem(file.to_owned(), number))?);
    }
    if certificates.is_empty() {
        return Err(FileError::NoCertificate(file.to_owned()));
    }
    Ok((pem, certificates))
}

/// A file with a private key.
pub(super) fn private_key(file: &str) -> Result<(String, PrivateKeyDer<'static>), FileError> {
    let pem = text(file, file)?;
    let key = PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| FileError::NoKey(file.to_owned()))?;
    Ok((pem, key))
}

/// The certificates with their key, which must be the first one's; in errors they are in the field `cert_field`.
pub(super) fn together(
    certificates: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    cert_field: &str,
) -> Result<CertifiedKey, FileError> {
    match CertifiedKey::from_der(certificates, key, &ring::default_provider()) {
        Ok(together) => Ok(together),
        Err(Error::InconsistentKeys(_)) => Err(FileError::OtherKey(cert_field.to_owned())),
        Err(error) => Err(FileError::Unusable(Box::new(error))),
    }
}

fn text(file: &str, shown: &str) -> Result<String, FileError> {
    if !file.starts_with('/') {
        return Err(FileError::Relative);
    }
    read_regular(Path::new(file)).map_err(|error| FileError::Unreadable(shown.to_owned(), error))
}
