//! The dashboard as its users see it: in Chromium, of a real service.

mod content_policy;
mod page;
mod service_comes_and_goes;
mod shape;
mod subjects;
mod token;
