//! The compose project as people start it: real containers, asked through the ports that are published.
//!
//! It has a target of its own, which no other run includes: `cargo xtask test --compose` first sees to an engine and to the
//! images. One test after another, since all are about the same project.

mod guide;
mod images;
mod outages;
mod project;

use anyhow::{Result, bail};
use project::Project;

#[tokio::main]
async fn main() -> Result<()> {
    tokio::select! {
        done = run() => done,
        // What is up is taken down on the way out.
        _ = tokio::signal::ctrl_c() => bail!("interrupted"),
    }
}

async fn run() -> Result<()> {
    let mut project = Project::up().await?;
    images::hold_what_they_should(&project)?;
    images::run_without_rights(&project)?;
    guide::does_what_it_shows(&project).await?;
    outages::the_story_comes_out(&mut project).await?;
    outages::a_replica_that_stops_is_not_missed(&mut project).await?;
    outages::a_store_out_of_reach_is_each_routes_choice(&mut project).await?;
    outages::no_service_is_each_routes_choice(&mut project).await?;
    outages::everything_was_quiet(&project)?;
    project.down()
}
