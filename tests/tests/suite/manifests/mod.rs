//! The manifests for Kubernetes, Istio and Envoy Gateway: as kustomize makes them, by the schemas of what will read them, in
//! themselves, and as far as that goes without a cluster, at work.

mod rendered;
mod schemas;

mod guides;
mod kinds;
mod pods;
mod proxies;
mod through_envoy;
