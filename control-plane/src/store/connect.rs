//! From the store's configuration to clients for its servers.

use std::{path::PathBuf, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use redis::{
    Client, ClientTlsConfig, ConnectionAddr, IntoConnectionInfo as _, ProtocolVersion, RedisConnectionInfo,
    TlsCertificates,
    io::tcp::{TcpSettings, socket2::TcpKeepalive},
};
use rustls::{RootCertStore, crypto::ring};

use super::StoreError;
use crate::{
    config::{self, HostPort, Identity, Secret, Tls},
    renewed::Renewed,
};

/// Makes clients for the servers of one store.
#[derive(Debug)]
pub(super) struct Connector {
    /// How to log in at a server.
    login: Option<Login>,
    /// How to log in at a sentinel.
    sentinel_login: Option<Login>,
    /// The database of a server.
    database: u32,
    /// An address of no host, with all that there is to know about TLS; none without TLS.
    tls: Option<ConnectionAddr>,
    tcp: TcpSettings,
}

/// A user and its password as it is now. Files are read beside the connections, since whoever reads one may have to wait
/// for its file system.
#[derive(Debug)]
struct Login {
    username: Option<String>,
    password: Renewed<Secret>,
}

/// Where a Redis server is.
#[derive(Clone, Debug)]
pub(super) enum Endpoint {
    /// At a host's port.
    Tcp(HostPort),
    /// At a socket in the file system.
    Unix(PathBuf),
}

impl Connector {
    /// Connects to nothing yet. With a password in a file it must be called inside a Tokio runtime.
    ///
    /// # Errors
    /// When TLS is asked for and can't be had, or a password's file is of no use any more.
    pub(super) fn new(config: &config::Store) -> Result<Self, StoreError> {
        Ok(Self {
            login: Login::of("store.password_file", config.login.as_ref())?,
            sentinel_login: Login::of("store.sentinel.password_file", config.sentinel_login.as_ref())?,
            database: config.database,
            tls: config.tls.as_ref().map(tls_address).transpose()?,
            tcp: TcpSettings::default().set_nodelay(true).set_keepalive(keepalive()),
        })
    }

    /// A client for a Redis server, with the password as it is now: one client for one connection.
    pub(super) fn server(&self, endpoint: &Endpoint) -> Result<Client, StoreError> {
        let address = match endpoint {
            Endpoint::Tcp(address) => self.address(address),
            Endpoint::Unix(path) => ConnectionAddr::Unix(path.clone()),
        };
        // Only in RESP3 does the client say at once that a connection broke.
        let redis = login(self.login.as_ref()).set_db(self.database.into()).set_protocol(ProtocolVersion::RESP3);
        self.client(address, redis)
    }

    /// A client for the sentinel at `address`: with a login of its own, and no database.
    pub(super) fn sentinel(&self, address: &HostPort) -> Result<Client, StoreError> {
        self.client(self.address(address), login(self.sentinel_login.as_ref()))
    }

    fn address(&self, HostPort { host, port }: &HostPort) -> ConnectionAddr {
        match &self.tls {
            Some(ConnectionAddr::TcpTls { insecure, tls_params, .. }) => ConnectionAddr::TcpTls {
                host: host.clone(),
                port: *port,
                insecure: *insecure,
                tls_params: tls_params.clone(),
            },
            _ => ConnectionAddr::Tcp(host.clone(), *port),
        }
    }

    fn client(&self, address: ConnectionAddr, redis: RedisConnectionInfo) -> Result<Client, StoreError> {
        let info = address.into_connection_info()?;
        Ok(Client::open(info.set_tcp_settings(self.tcp.clone()).set_redis_settings(redis))?)
    }
}

impl Login {
    /// `what` names the password's file in the log.
    fn of(what: &'static str, login: Option<&config::Login>) -> Result<Option<Self>, StoreError> {
        let Some(config::Login { username, password }) = login else { return Ok(None) };
        let read = {
            let password = password.clone();
            move || password.read()
        };
        let renewed = match password.file() {
            None => read().map(Renewed::fixed),
            Some(file) => Renewed::of_files(what, vec![file.to_owned()], read),
        };
        let password = renewed.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        Ok(Some(Self { username: username.clone(), password }))
    }
}

/// The name and version are what CLIENT LIST shows of each connection, from Redis 7.2 on.
fn login(login: Option<&Login>) -> RedisConnectionInfo {
    let mut info = RedisConnectionInfo::default().set_lib_name("sluicegate", env!("CARGO_PKG_VERSION"));
    if let Some(Login { username, password }) = login {
        info = info.set_password(password.get().expose());
        if let Some(username) = username {
            info = info.set_username(username);
        }
    }
    info
}

/// A connection on which nothing is sent is found dead within half a minute, and kept open by what is in between.
fn keepalive() -> TcpKeepalive {
    TcpKeepalive::new().with_time(Duration::from_secs(15)).with_interval(Duration::from_secs(5)).with_retries(3)
}

/// The certificates are parsed here, once, rather than for each client.
fn tls_address(Tls { ca_pem, identity }: &Tls) -> Result<ConnectionAddr, StoreError> {
    // Whatever else this process has installed serves as well.
    let _ = ring::default_provider().install_default();
    let root_cert = match ca_pem {
        Some(pem) => pem.clone(),
        None => system_roots()?,
    };
    let client_tls = identity.as_ref().map(|Identity { certificate_pem, key_pem }| ClientTlsConfig {
        client_cert: certificate_pem.clone().into_bytes(),
        client_key: key_pem.expose().as_bytes().to_vec(),
    });
    // Never without roots: the client would trust those that it was built with.
    let certificates = TlsCertificates { client_tls, root_cert: Some(root_cert.into_bytes()) };
    let nowhere = ConnectionAddr::TcpTls { host: String::new(), port: 0, insecure: false, tls_params: None };
    let client = Client::build_with_tls(nowhere.into_connection_info()?, certificates)?;
    Ok(client.get_connection_info().addr().clone())
}

/// The certificates of the authorities that the system trusts, in PEM: its files, or those that SSL_CERT_FILE and
/// SSL_CERT_DIR name. One that can't be used doesn't spoil the others.
fn system_roots() -> Result<String, StoreError> {
    let found = rustls_native_certs::load_native_certs();
    let usable = found.certs.iter().filter(|certificate| RootCertStore::empty().add((*certificate).clone()).is_ok());
    let pem: String = usable.map(|certificate| pem(certificate)).collect();
    if pem.is_empty() {
        let why = found.errors.first().map(|error| format!(" ({error})")).unwrap_or_default();
        let reason = format!("TLS: there are no certificate authorities on this system{why}; set store.tls.ca_file");
        return Err(StoreError::Unavailable(reason));
    }
    Ok(pem)
}

fn pem(certificate: &[u8]) -> String {
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", STANDARD.encode(certificate))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Store};

    fn store(fields: &str) -> Store {
        let yaml = format!(
            "store: {{ {fields} }}\npolicies: {{ a: {{ limits: [ {{ name: b, capacity: 1, refill: 1, per: 1s }} ] }} }}"
        );
        Config::parse("f.yaml", &yaml, &|_| None).unwrap_or_else(|errors| panic!("{errors}")).store
    }

    fn check(client: Result<Client, StoreError>, address: &str, login: (Option<&str>, Option<&str>), database: i64) {
        let client = client.unwrap();
        let info = client.get_connection_info();
        assert_eq!(info.addr().to_string(), address);
        let redis = info.redis_settings();
        assert_eq!((redis.username(), redis.password()), login);
        assert_eq!((redis.db(), redis.lib_name()), (database, Some("sluicegate")));
        assert!(info.tcp_settings().nodelay() && info.tcp_settings().keepalive().is_some());
        assert!(!format!("{client:?}").contains("hunter2"), "{client:?}");
    }

    #[test]
    fn servers_and_sentinels_have_logins_of_their_own() {
        let connector = Connector::new(&store(
            "url: 'redis+sentinel://u:hunter2@s/m/3', sentinel: { username: watch, password: hunter2s }",
        ))
        .unwrap();
        let address = HostPort { host: "::1".to_owned(), port: 7000 };
        let server = Endpoint::Tcp(address.clone());
        check(connector.server(&server), "::1:7000", (Some("u"), Some("hunter2")), 3);
        check(connector.sentinel(&address), "::1:7000", (Some("watch"), Some("hunter2s")), 0);
        assert!(!format!("{connector:?}").contains("hunter2"), "{connector:?}");
        let connector = Connector::new(&store("url: redis://h")).unwrap();
        check(connector.server(&server), "::1:7000", (None, None), 0);
        let connector = Connector::new(&store("url: 'unix:/s?db=2', password: hunter2")).unwrap();
        check(connector.server(&Endpoint::Unix("/s".into())), "/s", (None, Some("hunter2")), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_has_the_last_password_that_the_file_had() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("password");
        std::fs::write(&file, "hunter2\n").unwrap();
        let connector = Connector::new(&store(&format!("url: redis://h, password_file: {}", file.display()))).unwrap();
        let server = Endpoint::Tcp(HostPort { host: "h".to_owned(), port: 1 });
        let is = |password: &str| check(connector.server(&server), "h:1", (None, Some(password)), 0);
        let renewed = || connector.login.as_ref().unwrap().password.changed();
        is("hunter2");
        let change = renewed();
        std::fs::write(&file, "hunter22").unwrap();
        change.await;
        is("hunter22");
        // What is of no use changes nothing, and a pipe that nobody writes to holds nobody up.
        let change = renewed();
        std::fs::write(&file, "\n").unwrap();
        is("hunter22");
        std::fs::remove_file(&file).unwrap();
        is("hunter22");
        rustix::fs::mkfifoat(rustix::fs::CWD, &file, rustix::fs::Mode::RWXU).unwrap();
        is("hunter22");
        std::fs::remove_file(&file).unwrap();
        std::fs::write(&file, "hunter222").unwrap();
        change.await;
        is("hunter222");
        assert!(!format!("{connector:?}").contains("hunter2"), "{connector:?}");
    }

    #[test]
    fn with_tls_every_server_is_verified() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("ca.pem");
        let key = rcgen::KeyPair::generate().unwrap();
        let ca = rcgen::CertificateParams::default().self_signed(&key).unwrap();
        std::fs::write(&file, ca.pem()).unwrap();
        let config = store(&format!("url: rediss://h, tls: {{ ca_file: {} }}", file.display()));
        let connector = Connector::new(&config).unwrap();
        let address = HostPort { host: "h2".to_owned(), port: 1 };
        for client in [connector.server(&Endpoint::Tcp(address.clone())), connector.sentinel(&address)] {
            let client = client.unwrap();
            let ConnectionAddr::TcpTls { host, port, insecure, tls_params } = client.get_connection_info().addr()
            else {
                panic!("{client:?}");
            };
            assert_eq!((host.as_str(), *port, *insecure), ("h2", 1, false));
            // Nobody but the one of the file is trusted.
            assert!(format!("{tls_params:?}").contains("RootCertStore { roots: \"(1 roots)\" }"), "{tls_params:?}");
        }
    }
}
