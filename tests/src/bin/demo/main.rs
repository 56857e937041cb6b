//! The demo: starts everything on this machine, tells the story on the terminal, and stops what it started.
//!
//! Exits 0 only when each step came out as it should.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "the terminal is what a demo is for")]

mod world;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use sluicegate_tests::{Story, interrupt};
use tokio::signal::{
    ctrl_c,
    unix::{SignalKind, signal},
};

use world::World;

/// Shows Sluicegate at work: real Redis, service and Envoy, on the usual ports when they are free.
#[derive(Parser)]
#[command(name = "demo")]
struct Arguments {
    /// Leave everything running until Ctrl-C.
    #[arg(long)]
    keep: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    match show(Arguments::parse().keep).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("demo: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether each step came out as it should. All parts end with this function, also when it is interrupted.
async fn show(keep: bool) -> Result<bool> {
    let (mut world, story) = tokio::select! {
        told = tell() => told?,
        () = interrupted() => return Ok(false),
    };
    println!("{}", story.render());
    if !story.all_ok() {
        eprintln!("{}", world.logs());
    }
    if keep {
        println!("Try it:\n{}\n\nRunning until Ctrl-C.", world.curl_lines());
        interrupted().await;
    } else {
        println!("Try it with --keep, which leaves everything running:\n{}", world.curl_lines());
    }
    Ok(story.all_ok())
}

async fn tell() -> Result<(World, Story)> {
    let mut world = World::start().await?;
    println!("{}\n", world.addresses());
    let story = Story::tell(&mut world).await?;
    Ok((world, story))
}

/// Returns on Ctrl-C and on SIGTERM.
async fn interrupted() {
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        return;
    };
    tokio::select! {
        _ = ctrl_c() => {}
        _ = terminate.recv() => {}
    }
    interrupt();
}
