//! Which requests a rule is for.

use crate::{
    doubt::Doubt,
    header_match::{HeaderIs, HeaderMatch},
    host::HostMatch,
    network::Network,
    path_match::PathMatch,
    view::View,
};

/// What a request must be for a rule to match; each condition that is there must hold, and without any every request
/// matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matcher {
    /// One of these methods, in the very letters.
    pub methods: Option<Vec<String>>,
    /// A path like this.
    pub path: Option<PathMatch>,
    /// For one of these hosts.
    pub hosts: Option<Vec<HostMatch>>,
    /// All of these.
    pub headers: Vec<HeaderMatch>,
    /// From an address in one of these ranges. A client without address, at a unix socket, is in none.
    pub client: Option<Vec<Network>>,
    /// On one of these routes of the proxy.
    pub route: Option<Vec<String>>,
}

impl Matcher {
    pub(crate) fn matches(&self, view: &View<'_>, doubt: &Doubt) -> bool {
        one(self.methods.as_ref(), |method| method.as_bytes() == view.method())
            && self.path.as_ref().is_none_or(|path| path.matches(view, doubt))
            && one(self.hosts.as_ref(), |host| host.matches(view.host()))
            && one(self.route.as_ref(), |route| view.route() == Some(route.as_bytes()))
            && one(self.client.as_ref(), |network| view.client().is_some_and(|ip| network.contains(ip)))
            && self.headers.iter().all(|header| header.matches(view, doubt))
    }

    /// Whether it may be in doubt.
    pub(crate) fn has_pattern(&self) -> bool {
        self.path.as_ref().is_some_and(PathMatch::is_pattern)
            || self.headers.iter().any(|header| matches!(header.is, HeaderIs::Like(_)))
    }
}

fn one<T>(allowed: Option<&Vec<T>>, is: impl FnMut(&T) -> bool) -> bool {
    allowed.is_none_or(|allowed| allowed.iter().any(is))
}
