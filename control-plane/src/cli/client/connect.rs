//! A connection to a service: plain, with TLS, or at a socket.

use std::{io, path::Path, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
};
use tokio_rustls::TlsConnector;

use super::{ClientError, url::ServiceUrl};

/// What is read from and written to.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Connects; `ca_file` says whom to trust instead of whom the system trusts.
pub(super) async fn connect(url: &ServiceUrl, ca_file: Option<&Path>) -> Result<Box<dyn Stream>, ClientError> {
    let unreachable = |error: io::Error| ClientError::Unreachable { url: url.to_string(), error: error.to_string() };
    match url {
        ServiceUrl::Unix(path) => {
            UnixStream::connect(path).await.map(|stream| Box::new(stream) as _).map_err(unreachable)
        }
        ServiceUrl::Tcp { tls, host, port, .. } => {
            let stream = TcpStream::connect((host.as_str(), *port)).await.map_err(unreachable)?;
            if !tls {
                return Ok(Box::new(stream));
            }
            let connector = TlsConnector::from(Arc::new(trusting(ca_file)?));
            let name = ServerName::try_from(host.clone()).map_err(|_| ClientError::Url(url.to_string()))?;
            let stream = connector.connect(name, stream).await.map_err(unreachable)?;
            Ok(Box::new(stream))
        }
    }
}

fn trusting(ca_file: Option<&Path>) -> Result<ClientConfig, ClientError> {
    let mut roots = RootCertStore::empty();
    match ca_file {
        Some(file) => {
            let fault = |error: String| ClientError::File(file.display().to_string(), error);
            let pem = std::fs::read(file).map_err(|error| fault(error.to_string()))?;
            for certificate in CertificateDer::pem_slice_iter(&pem) {
                let certificate = certificate.map_err(|error| fault(error.to_string()))?;
                roots.add(certificate).map_err(|error| fault(error.to_string()))?;
            }
            if roots.is_empty() {
                return Err(fault("has no certificate in PEM".to_owned()));
            }
        }
        None => {
            // One that can't be read is one that is not trusted.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| ClientError::File("TLS".to_owned(), error.to_string()))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
