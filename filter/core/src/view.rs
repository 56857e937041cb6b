//! A request as rules look at it: each thing is made ready once, when the first rule asks for it.

use std::{cell::OnceCell, net::IpAddr};

use crate::{Field, NormalPath, Request, address, host::Host};

/// One request.
pub(crate) struct View<'a> {
    request: &'a dyn Request,
    path: OnceCell<NormalPath>,
    lower_path: OnceCell<NormalPath>,
    host: OnceCell<Host>,
    client: OnceCell<Option<IpAddr>>,
    route: OnceCell<Option<Vec<u8>>>,
}

impl<'a> View<'a> {
    pub(crate) const fn of(request: &'a dyn Request) -> Self {
        Self {
            request,
            path: OnceCell::new(),
            lower_path: OnceCell::new(),
            host: OnceCell::new(),
            client: OnceCell::new(),
            route: OnceCell::new(),
        }
    }

    pub(crate) fn request(&self) -> &'a dyn Request {
        self.request
    }

    pub(crate) fn method(&self) -> &'a [u8] {
        self.pseudo(":method")
    }

    /// The path as it came, with its query.
    pub(crate) fn full_path(&self) -> &'a [u8] {
        self.pseudo(":path")
    }

    /// The path as rules compare it; in lower case where case does not matter.
    pub(crate) fn path(&self, ignore_case: bool) -> &NormalPath {
        let path = self.path.get_or_init(|| NormalPath::of(self.full_path()));
        if ignore_case { self.lower_path.get_or_init(|| path.to_lower_case()) } else { path }
    }

    pub(crate) fn host(&self) -> &Host {
        self.host.get_or_init(|| Host::of(self.pseudo(":authority")))
    }

    pub(crate) fn client(&self) -> Option<IpAddr> {
        *self.client.get_or_init(|| address::client(&self.request.property(&["source", "address"])?))
    }

    pub(crate) fn route(&self) -> Option<&[u8]> {
        self.route.get_or_init(|| self.request.property(&["xds", "route_name"])).as_deref()
    }

    fn pseudo(&self, name: &str) -> &'a [u8] {
        match self.request.headers().get(name) {
            Field::One(value) => value,
            Field::Absent | Field::Several => &[],
        }
    }
}
