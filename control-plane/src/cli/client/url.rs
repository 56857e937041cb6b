//! Where a service is, as people write it.

use std::{fmt, path::PathBuf, str::FromStr};

use axum::http::Uri;

use super::ClientError;

/// Where a service is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ServiceUrl {
    Tcp { tls: bool, host: String, port: u16, authority: String, prefix: String },
    Unix(PathBuf),
}

impl FromStr for ServiceUrl {
    type Err = ClientError;

    fn from_str(text: &str) -> Result<Self, ClientError> {
        let wrong = || ClientError::Url(text.to_owned());
        if let Some(path) = text.strip_prefix("unix:") {
            // unix:///path is how others write it.
            let path = path.strip_prefix("//").unwrap_or(path);
            return if path.starts_with('/') { Ok(Self::Unix(path.into())) } else { Err(wrong()) };
        }
        let uri: Uri = text.parse().map_err(|_| wrong())?;
        let tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(wrong()),
        };
        let authority = uri.authority().filter(|authority| !authority.as_str().contains('@')).ok_or_else(wrong)?;
        if uri.query().is_some() {
            return Err(wrong());
        }
        Ok(Self::Tcp {
            tls,
            host: authority.host().trim_start_matches('[').trim_end_matches(']').to_owned(),
            port: authority.port_u16().unwrap_or(if tls { 443 } else { 80 }),
            authority: authority.to_string(),
            prefix: uri.path().trim_end_matches('/').to_owned(),
        })
    }
}

impl ServiceUrl {
    /// What the Host header says.
    pub(super) fn host(&self) -> &str {
        match self {
            Self::Tcp { authority, .. } => authority,
            Self::Unix(_) => "localhost",
        }
    }

    /// The path of a request.
    pub(super) fn path(&self, path: &str) -> String {
        match self {
            Self::Tcp { prefix, .. } => format!("{prefix}{path}"),
            Self::Unix(_) => path.to_owned(),
        }
    }
}

impl fmt::Display for ServiceUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { tls, authority, prefix, .. } => {
                write!(formatter, "{}://{authority}{prefix}", if *tls { "https" } else { "http" })
            }
            Self::Unix(path) => write!(formatter, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, shown: Option<&str>, path: &str) {
        let url = text.parse::<ServiceUrl>();
        assert_eq!(url.as_ref().ok().map(ToString::to_string).as_deref(), shown, "{text}");
        if let Ok(url) = url {
            assert_eq!(url.path("/v1/top"), path, "{text}");
        }
    }

    #[test]
    fn services_are_urls_or_sockets() {
        check("http://127.0.0.1:8081", Some("http://127.0.0.1:8081"), "/v1/top");
        check("http://[::1]:8081/", Some("http://[::1]:8081"), "/v1/top");
        check("https://limits.example/admin/", Some("https://limits.example/admin"), "/admin/v1/top");
        check("unix:/run/admin.sock", Some("unix:/run/admin.sock"), "/v1/top");
        check("unix:///run/admin.sock", Some("unix:/run/admin.sock"), "/v1/top");
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "127.0.0.1:8081", "ftp://host", "unix:run", "http://", "http://u:p@host", "http://host/?a=b"] {
            check(text, None, "");
        }
    }
}
