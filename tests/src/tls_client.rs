//! Connections that speak TLS.

use std::sync::Arc;

use anyhow::Result;
use tokio::net::TcpStream;
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _},
    },
};

use crate::Certificates;

/// A connection to a server of 127.0.0.1 that these certificates are of, as their client or as nobody.
///
/// # Errors
/// When there is no server, or it shows another certificate. A server that refuses the client's shows that later.
pub async fn connect_tls(port: u16, certificates: &Certificates, as_client: bool) -> Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificates.authority())?)?;
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions()?.with_root_certificates(roots);
    let config = if as_client {
        let (certificate, key) = certificates.client();
        let chain = vec![CertificateDer::from_pem_file(certificate)?];
        config.with_client_auth_cert(chain, PrivateKeyDer::from_pem_file(key)?)?
    } else {
        config.with_no_client_auth()
    };
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    Ok(TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("localhost")?, stream).await?)
}
