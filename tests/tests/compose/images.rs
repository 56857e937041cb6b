//! What is in the images, and what containers may do.

use std::{fs, io::Read as _};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use sluicegate_tests::Tool;

use crate::project::{Project, docker, step};

const SERVICE: &str = "sluicegate/sluicegate:0.1.0";
/// Of the service's image, in a machine's measure: most of it is the program.
const SERVICE_LIMIT_BYTES: u64 = 80_000_000;

/// The service: small, without rights. The filter: `plugin.wasm` in one layer, the same bytes as were built outside.
pub(crate) fn hold_what_they_should(project: &Project) -> Result<()> {
    step("looking into the images");
    let service = inspect(SERVICE)?;
    ensure!(service["Config"]["User"] == "65532" || service["Config"]["User"] == "nonroot", "{service:#}");
    ensure!(service["Config"]["Healthcheck"]["Test"][1] == "/usr/local/bin/sluicegate", "{service:#}");
    let bytes = service["Size"].as_u64().context("an image without a size")?;
    eprintln!("compose: the service's image has {} MB", bytes / 1_000_000);
    ensure!(bytes < SERVICE_LIMIT_BYTES, "{SERVICE} has {bytes} bytes");

    let tag = format!("{}-filter", project.network("image"));
    docker(&["build", "--quiet", "--file", "filter/Dockerfile", "--tag", &tag, "."])?;
    let filter = inspect(&tag)?;
    let layers = filter["RootFS"]["Layers"].as_array().context("an image without layers")?.len();
    ensure!(layers == 1, "Istio reads the last of {layers} layers; one is the surest");
    let plugin = plugin(&tag)?;
    docker(&["image", "rm", "--force", &tag])?;
    let outside = fs::read(Tool::FilterWasm.path()?)?;
    ensure!(
        plugin == outside,
        "the filter's bytes depend on where it is built: {} and {}",
        plugin.len(),
        outside.len()
    );
    Ok(())
}

/// No container may write to its image, become root, or be reached from other machines.
pub(crate) fn run_without_rights(project: &Project) -> Result<()> {
    step("looking at what containers may do");
    let published = [
        ("envoy", vec!["10000/tcp"]),
        ("sluicegate-1", vec!["8080/tcp", "8081/tcp"]),
        ("sluicegate-2", vec![]),
        ("redis", vec![]),
        ("upstream", vec![]),
        ("prometheus", vec!["9090/tcp"]),
    ];
    for (service, ports) in published {
        let container = project.inspect(service)?;
        let (config, host) = (&container["Config"], &container["HostConfig"]);
        let user = config["User"].as_str().unwrap_or_default();
        ensure!(!user.is_empty() && !user.starts_with("0") && user != "root", "{service} runs as {user:?}");
        ensure!(host["ReadonlyRootfs"] == true, "{service} can write to its image");
        ensure!(host["CapDrop"] == json!(["ALL"]), "{service} has capabilities: {}", host["CapDrop"]);
        ensure!(host["SecurityOpt"] == json!(["no-new-privileges:true"]), "{service} may gain rights");
        let bindings = host["PortBindings"].as_object().cloned().unwrap_or_default();
        let bound: Vec<_> = bindings.keys().map(String::as_str).collect();
        ensure!(bound == ports, "{service} publishes {bound:?}");
        for binding in bindings.values() {
            ensure!(binding[0]["HostIp"] == "127.0.0.1", "{service} is published to others: {binding}");
        }
    }
    Ok(())
}

fn inspect(image: &str) -> Result<Value> {
    let mut found: Vec<Value> = serde_json::from_str(&docker(&["image", "inspect", image])?)?;
    found.pop().with_context(|| format!("there is no image {image}"))
}

/// The bytes of `plugin.wasm` in an image from which nothing can run.
fn plugin(image: &str) -> Result<Vec<u8>> {
    let container = docker(&["create", image, "/none"])?;
    let folder = tempfile::tempdir()?;
    let copy = folder.path().join("plugin.wasm");
    let copied = docker(&["cp", &format!("{}:/plugin.wasm", container.trim()), &copy.display().to_string()]);
    docker(&["rm", container.trim()])?;
    copied?;
    let mut bytes = Vec::new();
    fs::File::open(copy)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}
