//! The quick start's half for Docker, as a reader would type it.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use anyhow::{Result, ensure};
use sluicegate_tests::{Page, Place, repository};

use crate::project::{Project, step};

const PAGE: &str = "docs/quick-start.md";

/// Every command with the output that the page shows. Only names differ: this project's own, and its ports.
pub(crate) async fn does_what_it_shows(project: &Project) -> Result<()> {
    step("following the quick start");
    let text = project.at_its_ports(&fs::read_to_string(repository(PAGE))?);
    let page = Page::parse(PAGE, &text)?;
    ensure!(page.blocks_in(&Place::Docker).count() > 0, "{PAGE} has no commands for Docker");
    let folder = tempfile::tempdir()?;
    let script = folder.path().join("docker");
    fs::write(&script, stand_in(project)?)?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    let mut shell = Command::new("bash");
    project.environment(shell.current_dir(repository(".")).env("PATH", path_with(folder.path())));
    page.run(&Place::Docker, shell, folder.path()).await?;
    project.until_healthy(&["redis", "sluicegate-1", "sluicegate-2"]).await
}

/// `docker compose` of whatever age, for this project, whose images are built.
fn stand_in(project: &Project) -> Result<String> {
    Ok(format!(
        "#!/bin/bash\n\
        [ \"$1\" = compose ] || {{ echo \"docker $1: the page is about compose alone\" >&2; exit 1; }}\n\
        shift\n\
        words=()\n\
        for word in \"$@\"; do\n\
        case $word in --wait) words+=(--detach) ;; --build) ;; *) words+=(\"$word\") ;; esac\n\
        done\n\
        exec {} \"${{words[@]}}\"\n",
        project.compose_words()?.join(" ")
    ))
}

fn path_with(folder: &Path) -> String {
    format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default())
}
