//! TLS of the listeners, seen from outside.

mod service;

use std::{fs, net::SocketAddr, path::PathBuf, sync::Arc};

use hyper::{Request, StatusCode, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName},
};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

use service::{Http1, Service, command, until};

/// An authority whose certificates are files.
struct Authority {
    directory: TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key, in DER.
type Leaf = (CertificateDer<'static>, PrivateKeyDer<'static>);

impl Authority {
    fn new() -> Self {
        let mut ca = CertificateParams::default();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(ca, KeyPair::generate().unwrap()).unwrap();
        let authority = Self { directory: tempfile::tempdir().unwrap(), issuer };
        fs::write(authority.path("ca.pem"), authority.issuer.pem()).unwrap();
        authority.renew();
        authority
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A certificate by this authority.
    fn leaf(&self) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let leaf = CertificateParams::new(["localhost".to_owned()]).unwrap();
        (leaf.signed_by(&key, &self.issuer).unwrap(), key)
    }

    fn client(&self) -> Leaf {
        let (certificate, key) = self.leaf();
        (certificate.der().clone(), PrivateKeyDer::Pkcs8(key.serialize_der().into()))
    }

    /// A new certificate in the service's files; it is returned.
    fn renew(&self) -> CertificateDer<'static> {
        let (certificate, key) = self.leaf();
        fs::write(self.path("tls.crt"), certificate.pem()).unwrap();
        fs::write(self.path("tls.key"), key.serialize_pem()).unwrap();
        certificate.der().clone()
    }

    fn fields(&self) -> String {
        let (certificate, key) = (self.path("tls.crt"), self.path("tls.key"));
        format!("cert_file: {}, key_file: {}", certificate.display(), key.display())
    }

    /// Connects as a client that trusts this authority.
    async fn connect(
        &self,
        address: SocketAddr,
        alpn: &str,
        client: Option<Leaf>,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match client {
            None => config.with_no_client_auth(),
            Some((certificate, key)) => config.with_client_auth_cert(vec![certificate], key).unwrap(),
        };
        config.alpn_protocols = vec![alpn.as_bytes().to_vec()];
        let stream = TcpStream::connect(address).await?;
        TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("localhost").unwrap(), stream).await
    }
}

fn shown(stream: &TlsStream<TcpStream>) -> CertificateDer<'static> {
    stream.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned()
}

#[tokio::test]
async fn both_listeners_speak_both_versions_of_http_by_alpn() {
    let authority = Authority::new();
    let tls = authority.fields();
    let service = Service::configured(&format!("tls: {{ {tls} }}\nadmin: {{ listen: 127.0.0.1:0, tls: {{ {tls} }} }}"));
    for address in [service.data, service.admin] {
        let stream = authority.connect(address, "http/1.1", None).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
        assert!(Http1::over(stream).get("/healthz").await.starts_with("http/1.1 200 "));

        let stream = authority.connect(address, "h2", None).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let request = Request::get("https://localhost/healthz").body(axum::body::Body::empty()).unwrap();
        assert_eq!(sender.send_request(request).await.unwrap().status(), StatusCode::OK);

        // Without TLS there is no answer, and no harm.
        let mut plain = Http1::connect(address).await;
        plain.write("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
        plain.ended().await;
    }
}

#[tokio::test]
async fn callers_without_a_certificate_of_the_authority_are_turned_away() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let service = Service::configured(&format!(
        "tls: {{ {}, client_ca_file: {} }}",
        authority.fields(),
        authority.path("ca.pem").display()
    ));
    let known = authority.connect(service.data, "http/1.1", Some(authority.client())).await.unwrap();
    assert!(Http1::over(known).get("/healthz").await.starts_with("http/1.1 200 "));
    for client in [None, Some(stranger.client())] {
        // In TLS 1.3 a client hears of it only with its first read.
        if let Ok(stream) = authority.connect(service.data, "http/1.1", client).await {
            let mut connection = Http1::over(stream);
            connection.write("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
            connection.ended().await;
        }
    }
}

#[tokio::test]
async fn the_command_line_asks_over_tls_whom_it_is_told_to_trust() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let service = Service::configured(&format!("admin: {{ listen: 127.0.0.1:0, tls: {{ {} }} }}", authority.fields()));
    let policies = |host: &str, trusted: &Authority| {
        let url = format!("https://{host}:{}", service.admin.port());
        command().args(["policies", "--json", "--url", &url, "--ca-file"]).arg(trusted.path("ca.pem")).output().unwrap()
    };
    let answer = policies("localhost", &authority);
    assert_eq!(answer.status.code(), Some(0), "{answer:?}");
    assert!(String::from_utf8_lossy(&answer.stdout).contains(r#""name":"api""#), "{answer:?}");
    // Neither another authority's nor another host's certificate is good enough.
    for refused in [policies("localhost", &stranger), policies("127.0.0.1", &authority)] {
        assert_eq!((refused.status.code(), refused.stdout.len()), (Some(1), 0), "{refused:?}");
        assert!(String::from_utf8_lossy(&refused.stderr).contains("certificate"), "{refused:?}");
    }
}

#[tokio::test]
async fn certificates_are_renewed_without_dropping_a_connection() {
    let authority = Authority::new();
    let service = Service::configured(&format!("tls: {{ {} }}", authority.fields()));
    let stream = authority.connect(service.data, "http/1.1", None).await.unwrap();
    let old = shown(&stream);
    let mut kept = Http1::over(stream);
    assert!(kept.get("/healthz").await.starts_with("http/1.1 200 "));

    // Half of a renewal is none: what was there before goes on.
    fs::write(authority.path("tls.key"), KeyPair::generate().unwrap().serialize_pem()).unwrap();
    let warning = service.logged("files changed, but can't be used: those from before stay");
    assert_eq!(
        warning["error"],
        "tls.key_file: is not the key of the certificate in tls.cert_file; name two files that belong together"
    );
    assert_eq!(shown(&authority.connect(service.data, "http/1.1", None).await.unwrap()), old);

    let new = authority.renew();
    until("the new certificate is shown", async || {
        (shown(&authority.connect(service.data, "http/1.1", None).await.unwrap()) == new).then_some(())
    })
    .await;
    assert!(kept.get("/healthz").await.starts_with("http/1.1 200 "));
}
