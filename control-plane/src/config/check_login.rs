//! Logins: a password comes from one place alone, and a user has one.

use crate::config::spanned::Spanned;

use super::{
    Login, Password, Secret, Topology,
    check::Checker,
    raw::{RawSentinel, RawStore},
    store_url::StoreUrl,
};

/// The fields of one login.
struct Fields<'a> {
    /// The path of what has them.
    path: &'static str,
    username: Option<&'a Spanned<String>>,
    password: Option<&'a Spanned<String>>,
    password_file: Option<&'a Spanned<String>>,
}

/// What a URL adds to the fields.
enum FromUrl<'a> {
    /// It is faulty, so there may be a login in it.
    Unknown,
    /// It is the URL of something else.
    Nothing,
    Good(&'a Spanned<String>, &'a StoreUrl),
}

/// In these checks the inner option is whether there is a login, the outer one whether it is good.
impl Checker<'_> {
    pub(super) fn store_login(&mut self, raw: &RawStore, url: Option<&StoreUrl>) -> Option<Option<Login>> {
        let fields = Fields {
            path: "store",
            username: raw.username.as_ref(),
            password: raw.password.as_ref(),
            password_file: raw.password_file.as_ref(),
        };
        match url {
            None => self.login(&fields, &FromUrl::Unknown),
            Some(StoreUrl { topology: Topology::Memory, .. }) => self.no_login(&fields),
            Some(url) => self.login(&fields, &FromUrl::Good(&raw.url, url)),
        }
    }

    /// The login of the sentinels themselves; the one in a URL is for the servers.
    pub(super) fn sentinel_login(
        &mut self,
        raw: Option<&Spanned<RawSentinel>>,
        url: Option<&StoreUrl>,
    ) -> Option<Option<Login>> {
        let Some(raw) = raw else { return Some(None) };
        if url.is_some_and(|url| !matches!(url.topology, Topology::Sentinel { .. })) {
            let reason = "is the login of sentinels, and store.url names none; leave it out, or use \
                          redis+sentinel://HOST,HOST/MASTER";
            return self.fault("store.sentinel", raw, reason);
        }
        let RawSentinel { username, password, password_file } = &raw.value;
        let fields = Fields {
            path: "store.sentinel",
            username: username.as_ref(),
            password: password.as_ref(),
            password_file: password_file.as_ref(),
        };
        self.login(&fields, &FromUrl::Nothing)
    }

    fn no_login(&mut self, fields: &Fields<'_>) -> Option<Option<Login>> {
        let mut good = Some(None);
        for (name, field) in
            [("username", fields.username), ("password", fields.password), ("password_file", fields.password_file)]
        {
            if let Some(field) = field {
                good = self.fault(&fields.path(name), field, "memory:// has no login; leave it out");
            }
        }
        good
    }

    fn login(&mut self, fields: &Fields<'_>, url: &FromUrl<'_>) -> Option<Option<Login>> {
        let username = self.username(fields, url);
        let password = self.password(fields, url);
        match (username?, password?) {
            (username, Some(password)) => Some(Some(Login { username, password })),
            (None, None) => Some(None),
            (Some(_), None) => {
                let path = fields.path;
                let reason = format!("a user name alone is no login; add {path}.password or {path}.password_file");
                match (fields.username, url) {
                    (Some(field), FromUrl::Good(..) | FromUrl::Nothing) => {
                        self.fault(&fields.path("username"), field, reason)
                    }
                    (None, FromUrl::Good(field, _)) => self.fault("store.url", field, reason),
                    // It may be in the URL, whose fault is told already.
                    (_, FromUrl::Unknown) | (None, FromUrl::Nothing) => None,
                }
            }
        }
    }

    fn username(&mut self, fields: &Fields<'_>, url: &FromUrl<'_>) -> Option<Option<String>> {
        let path = fields.path("username");
        match (fields.username, url.username()) {
            (None, username) => Some(username.cloned()),
            (Some(field), None) => self.not_empty(&path, field).map(Some),
            (Some(field), Some(_)) => {
                self.fault(&path, field, "there is a user name in store.url too; keep one of them")
            }
        }
    }

    fn password(&mut self, fields: &Fields<'_>, url: &FromUrl<'_>) -> Option<Option<Password>> {
        let mut password = Some(url.password().cloned().map(Password::Text));
        let mut first = url.password().map(|_| "store.url".to_owned());
        if let Some(field) = fields.password {
            let path = fields.path("password");
            password = match &first {
                Some(first) => self.twice(&path, field, first),
                None => self.not_empty(&path, field).map(|text| Some(Password::Text(Secret::new(text)))),
            };
            first = first.or(Some(path));
        }
        if let Some(field) = fields.password_file {
            let path = fields.path("password_file");
            password = match &first {
                Some(first) => self.twice(&path, field, first),
                None => {
                    let file = self.not_empty(&path, field)?;
                    let password = Password::File { file, written: field.value.clone() };
                    self.good(&path, field, password.read()).map(|_| Some(password))
                }
            };
        }
        password
    }

    fn twice<T>(&mut self, path: &str, field: &Spanned<String>, first: &str) -> Option<T> {
        self.fault(path, field, format!("there is a password in {first} too; keep one of them"))
    }
}

impl Fields<'_> {
    fn path(&self, field: &str) -> String {
        format!("{}.{field}", self.path)
    }
}

impl FromUrl<'_> {
    fn username(&self) -> Option<&String> {
        if let Self::Good(_, url) = self { url.username.as_ref() } else { None }
    }

    fn password(&self) -> Option<&Secret> {
        if let Self::Good(_, url) = self { url.password.as_ref() } else { None }
    }
}
