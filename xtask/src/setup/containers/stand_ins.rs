//! The images that the project starts from: pulled, or where no registry can be reached made of Debian's packages, of
//! this machine's Rust and of Envoy's wheel, under the same names.

use std::{
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};

use super::Containers;
use crate::{
    process,
    progress::Step,
    setup::{apt, envoy},
    tools_dir::ToolsDir,
    workspace::Workspace,
};

/// How long a registry may take to give an image.
const PULL_S: &str = "300";
/// Which recipe a stand-in was made by.
const LABEL: &str = "sluicegate.stand-in";

/// An image of which others are made, or that runs as it is.
struct Image {
    name: &'static str,
    /// How its stand-in is made of [`BASE`].
    dockerfile: &'static str,
    /// What goes into it besides Debian's packages.
    content: Content,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Content {
    None,
    /// The active toolchain, without its documentation.
    Rust,
    Envoy,
}

/// What the stand-ins are made of; no image of the project starts from it.
const BASE: &str = "debian:bookworm-slim";

const IMAGES: [Image; 5] = [
    Image {
        name: "rust:1.95-slim-bookworm",
        dockerfile: include_str!("images/rust.Dockerfile"),
        content: Content::Rust,
    },
    Image {
        name: "gcr.io/distroless/cc-debian12:nonroot",
        dockerfile: include_str!("images/distroless.Dockerfile"),
        content: Content::None,
    },
    Image {
        name: "envoyproxy/envoy:v1.40.0",
        dockerfile: include_str!("images/envoy.Dockerfile"),
        content: Content::Envoy,
    },
    // Redis 7.0: Debian has no newer one.
    Image { name: "redis:8.2-alpine", dockerfile: include_str!("images/redis.Dockerfile"), content: Content::None },
    // Prometheus 2.42 likewise.
    Image {
        name: "prom/prometheus:v3.5.0",
        dockerfile: include_str!("images/prometheus.Dockerfile"),
        content: Content::None,
    },
];

/// Of no package that could be reached: without a registry, nothing runs it.
#[cfg(test)]
const WITHOUT_STAND_IN: [&str; 1] = ["grafana/grafana:12.2.0"];

/// Sees to it that each image is there.
pub(super) fn ensure_all(containers: &Containers, workspace: &Workspace, tools: &ToolsDir) -> Result<()> {
    for image in IMAGES {
        if containers.engine.is_ours() {
            let recipe = image.recipe()?;
            if has_label(containers, image.name, &recipe) {
                continue;
            }
        }
        if exists(containers, image.name) && !is_stand_in(containers, image.name) {
            continue;
        }
        let step = Step::begin(image.name);
        let mut pull = Command::new("timeout");
        containers.apply(pull.arg(PULL_S).arg(containers.command_line.docker()).args(["pull", image.name]));
        if let Err(error) = process::run_logged(&step, &tools.log("docker-pull"), &mut pull) {
            // Nobody's own engine gets images that only bear a well-known name.
            if !containers.engine.is_ours() {
                bail!("{} can't be pulled: {error:#}", image.name);
            }
            eprintln!("setup: no registry gives {}: a stand-in is made", image.name);
            image.make(containers, workspace, tools, &step)?;
        }
        step.end();
    }
    Ok(())
}

impl Image {
    /// What the stand-in depends on.
    fn recipe(&self) -> Result<String> {
        let rust = match self.content {
            Content::Rust => process::output(Command::new("rustc").arg("--version"))?,
            _ => String::new(),
        };
        let mut hasher = DefaultHasher::new();
        self.dockerfile.hash(&mut hasher);
        Ok(format!("{:016x} {}", hasher.finish(), rust.trim()))
    }

    fn make(&self, containers: &Containers, workspace: &Workspace, tools: &ToolsDir, step: &Step) -> Result<()> {
        make_base(containers, tools, step)?;
        let context = tools.join("docker-context");
        let _old = fs::remove_dir_all(&context);
        fs::create_dir_all(&context).with_context(|| format!("creating {}", context.display()))?;
        fs::write(context.join("Dockerfile"), self.dockerfile).context("writing a Dockerfile")?;
        let more = match self.content {
            Content::None => PathBuf::new(),
            Content::Rust => PathBuf::from(process::output(Command::new("rustc").args(["--print", "sysroot"]))?.trim()),
            Content::Envoy => envoy::find(tools)?.canonicalize()?.parent().context("envoy is in no folder")?.to_owned(),
        };
        // By way of a pipe, which takes what is in two folders: a copy of the toolchain is 1 GB.
        let label = format!("{LABEL}={}", self.recipe()?);
        let mut build = Command::new("bash");
        build.args(["-c", PIPE, "bash"]).arg(&context).arg(more).args([self.name, &label]).current_dir(&workspace.root);
        containers.apply(&mut build);
        process::run_logged(step, &tools.log("docker-build"), &mut build)
    }
}

/// A context of one folder or two into an image. The network is the machine's, whatever its resolver is.
const PIPE: &str = "set -o pipefail; tar -c --exclude=./share --exclude=__pycache__ -C \"$1\" . ${2:+-C \"$2\" .} \
    | docker build --network host --tag \"$3\" --label \"$4\" -";

fn make_base(containers: &Containers, tools: &ToolsDir, step: &Step) -> Result<()> {
    if exists(containers, BASE) {
        return Ok(());
    }
    apt::ensure("debootstrap", "debootstrap", tools)?;
    let root = tools.join("debootstrap");
    let _old = fs::remove_dir_all(&root);
    let mut debootstrap = Command::new("debootstrap");
    debootstrap.args(["--variant=minbase", "--include=ca-certificates", "bookworm"]).arg(&root);
    process::run_logged(step, &tools.log("debootstrap"), &mut debootstrap)?;
    // This machine's authorities: what it reaches Debian and crates.io by may be a proxy with one of its own.
    let authorities = Path::new("/etc/ssl/certs/ca-certificates.crt");
    if authorities.exists() {
        fs::copy(authorities, root.join("etc/ssl/certs/ca-certificates.crt")).context("copying certificates")?;
    }
    let mut import = Command::new("bash");
    import.args(["-c", "set -o pipefail; tar -c -C \"$1\" . | docker import - \"$2\"", "bash"]).arg(&root).arg(BASE);
    containers.apply(&mut import);
    process::run_logged(step, &tools.log("docker-import"), &mut import)?;
    fs::remove_dir_all(&root).with_context(|| format!("removing {}", root.display()))
}

fn exists(containers: &Containers, name: &str) -> bool {
    inspect(containers, name, "{{.Id}}").is_some()
}

fn is_stand_in(containers: &Containers, name: &str) -> bool {
    label(containers, name).is_some_and(|label| !label.is_empty())
}

fn has_label(containers: &Containers, name: &str, recipe: &str) -> bool {
    label(containers, name).as_deref() == Some(recipe)
}

fn label(containers: &Containers, name: &str) -> Option<String> {
    inspect(containers, name, &format!("{{{{index .Config.Labels \"{LABEL}\"}}}}"))
}

fn inspect(containers: &Containers, name: &str, format: &str) -> Option<String> {
    let mut inspect = containers.docker(&["image", "inspect", "--format", format, name]);
    let output = inspect.output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The images that a file of the repository names after `word`, except our own.
    fn named(file: &str, word: &str) -> Vec<String> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
        let text = fs::read_to_string(path).unwrap();
        let lines = text.lines().filter_map(|line| line.trim_start().strip_prefix(word));
        let names = lines.filter_map(|rest| rest.split(' ').find(|word| !word.is_empty() && !word.starts_with("--")));
        let foreign = names.filter(|name| !name.starts_with("sluicegate/") && *name != "scratch");
        foreign.map(str::to_owned).collect()
    }

    #[test]
    fn every_image_that_the_project_starts_from_is_known() {
        let mut names = named("compose.yaml", "image: ");
        names.extend(named("Dockerfile", "FROM "));
        names.extend(named("filter/Dockerfile", "FROM "));
        let known: Vec<_> = IMAGES.iter().map(|image| image.name).chain(WITHOUT_STAND_IN).collect();
        for name in &names {
            assert!(known.contains(&name.as_str()), "{name} is in no list of images");
        }
        for name in known {
            assert!(names.iter().any(|named| named == name), "nothing starts from {name}");
        }
    }
}
