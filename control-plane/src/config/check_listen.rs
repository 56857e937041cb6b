//! The listeners: where they are, who may ask there, and how many at once.

use std::num::NonZeroUsize;

use crate::config::spanned::Spanned;

use super::{
    Address, Admin, Secret, ServerTls, Tokens,
    check::Checker,
    raw::{RawAdmin, RawConfig, RawServerTls},
    token::check_token,
};

/// Far above what the proxies of one service open, since each worker of a proxy needs one or a few.
const MAX_CONNECTIONS: usize = 10_000;
const MOST_CONNECTIONS: u32 = 1_000_000;

/// In these checks the inner option is whether the setting is there, the outer one whether it is good.
impl Checker<'_> {
    pub(super) fn admin(&mut self, raw: &RawConfig, data: Option<&Address>) -> Option<Admin> {
        let RawAdmin { token, token_file, metrics_token, metrics_token_file, tls, .. } = &raw.admin;
        let listen = self.address("admin.listen", raw.admin.listen.as_ref(), "127.0.0.1:8081");
        let token = self.tokens("admin.", token.as_ref(), token_file.as_ref());
        let metrics_token = self.tokens("admin.metrics_", metrics_token.as_ref(), metrics_token_file.as_ref());
        let tls = self.server_tls("admin.tls", tls.as_ref());
        let (listen, token) = (listen?, token?);
        if let Some(written) = &raw.admin.listen
            && token.is_none()
            && !listen.is_local()
        {
            let reason = "other machines can reach this address, so admin.token is required; set it, for example \
                          token: ${SLUICEGATE_ADMIN_TOKEN}";
            return self.fault("admin.listen", written, reason);
        }
        // The two defaults differ, so one of them was written.
        if let Some(written) = raw.admin.listen.as_ref().or(raw.listen.as_ref())
            && data.is_some_and(|data| data.collides(&listen))
        {
            let reason = format!("listen and admin.listen are both {listen}; give each its own address");
            return self.fault("", written, reason);
        }
        Some(Admin { listen, token, metrics_token: metrics_token?, tls: tls? })
    }

    /// The fields `token` and `token_file`, whose paths begin with `path`.
    pub(super) fn tokens(
        &mut self,
        path: &str,
        token: Option<&Spanned<String>>,
        token_file: Option<&Spanned<String>>,
    ) -> Option<Option<Tokens>> {
        let (token_path, file_path) = (format!("{path}token"), format!("{path}token_file"));
        match (token, token_file) {
            (None, None) => Some(None),
            (Some(_), Some(field)) => {
                self.fault(&file_path, field, format!("there is a token in {token_path} too; keep one of them"))
            }
            (Some(field), None) => {
                let text = self.not_empty(&token_path, field)?;
                self.good(&token_path, field, check_token(&text))?;
                Some(Some(Tokens::Text(Secret::new(text))))
            }
            (None, Some(field)) => {
                let file = self.not_empty(&file_path, field)?;
                let tokens = Tokens::File { file, written: field.value.clone() };
                self.good(&file_path, field, tokens.read())?;
                Some(Some(tokens))
            }
        }
    }

    pub(super) fn server_tls(
        &mut self,
        path: &'static str,
        raw: Option<&Spanned<RawServerTls>>,
    ) -> Option<Option<ServerTls>> {
        let Some(raw) = raw else { return Some(None) };
        let RawServerTls { cert_file, key_file, client_ca_file } = &raw.value;
        let named = |part: &str| format!("{path}.{part}");
        let tls = ServerTls {
            field: path,
            cert_file: self.not_empty(&named("cert_file"), cert_file)?,
            key_file: self.not_empty(&named("key_file"), key_file)?,
            client_ca_file: match client_ca_file {
                None => None,
                Some(field) => Some(self.not_empty(&named("client_ca_file"), field)?),
            },
        };
        match tls.load() {
            Ok(_) => Some(Some(tls)),
            Err(fault) => {
                let field = match (fault.part, client_ca_file) {
                    ("key_file", _) => key_file,
                    ("client_ca_file", Some(field)) => field,
                    _ => cert_file,
                };
                self.fault(&named(fault.part), field, fault.error)
            }
        }
    }

    pub(super) fn max_connections(&mut self, field: Option<&Spanned<u32>>) -> Option<NonZeroUsize> {
        self.number("max_connections", field, MAX_CONNECTIONS, 1..=MOST_CONNECTIONS)
    }

    pub(super) fn reuse_port(
        &mut self,
        field: Option<&Spanned<bool>>,
        listeners: [Option<&Address>; 2],
    ) -> Option<bool> {
        let Some(field) = field else { return Some(false) };
        let unix = listeners.into_iter().flatten().find(|address| matches!(address, Address::Unix(_)));
        match unix {
            Some(address) if field.value => self.fault(
                "reuse_port",
                field,
                format!("{address} is no port, and two processes can't share it; leave this out, or pass the sockets"),
            ),
            _ => Some(field.value),
        }
    }
}
