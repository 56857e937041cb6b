//! What each command does, as a list of phases.

use std::process::Command;

use anyhow::{Result, ensure};
use clap::{Parser, Subcommand};

use crate::{
    build, lint, process,
    progress::Phases,
    setup::{self, TestTools},
    workspace::Workspace,
};

/// The developer's commands of Sluicegate.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Install into .tools/ all that demo, test and lint need; each step is done once and kept
    Setup,
    /// Show rate limiting, an outage and the recovery, with real Redis, Envoy, filter and service
    Demo {
        /// Leave everything running until Ctrl-C and print the addresses
        #[arg(long)]
        keep: bool,
    },
    /// Build everything and run the test suite, natively and as wasm
    Test {
        /// Run the long versions too: ten times as many random sequences and takes, what needs a cluster, Sentinel or a
        /// browser, the limiter's suite on other versions of Redis and on Valkey, and the compose project
        #[arg(long)]
        all: bool,
        /// Run the store's faults alone, all of them, and write what was measured to tests/RESULTS.md
        #[arg(long, conflicts_with_all = ["all", "cargo_test"])]
        faults: bool,
        /// Run the compose project alone: some ten minutes the first time. Where no Docker engine runs, Debian's is
        /// installed, after asking unless CI is set
        #[arg(long, conflicts_with_all = ["all", "faults", "cargo_test"])]
        compose: bool,
        /// Arguments for `cargo test`, after `--`; with any of them the wasm tests are left to a run without
        #[arg(last = true)]
        cargo_test: Vec<String>,
    },
    /// Measure release builds beside other limiters and write bench/RESULTS.md; `cargo xtask bench --help` lists the
    /// options, once all is built
    #[command(disable_help_flag = true)]
    Bench {
        /// Options of the measurement, such as --limitador PATH or --only a,b
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        options: Vec<String>,
    },
    /// Build the filter and copy it to target/sluicegate_filter.wasm
    BuildFilter,
    /// Check format, clippy, docs, the Lua scripts and the rules of the house
    Lint,
    /// Lint, test --all, then the demo: what has to pass before a change lands
    Ci,
}

impl Cli {
    pub(crate) fn run(self) -> Result<()> {
        let workspace = Workspace::load()?;
        let mut phases = Phases::default();
        match self.command {
            Action::Setup => {
                setup::everything(&workspace)?;
                eprintln!("setup: all is there");
                Ok(())
            }
            Action::Demo { keep } => demo(&workspace, phases, keep),
            Action::Test { faults: true, .. } => test_faults(&workspace, &mut phases),
            Action::Test { compose: true, .. } => test_compose(&workspace, &mut phases),
            Action::Test { all, faults: false, compose: false, cargo_test } => {
                test(&workspace, &mut phases, Extent::of(all), &cargo_test)
            }
            Action::Bench { options } => bench(&workspace, phases, &options),
            Action::BuildFilter => {
                let wasm = phases.run("setup", || setup::for_filter(&workspace))?;
                phases.run("build the filter", || build::filter(&workspace, &wasm).map(drop))
            }
            Action::Lint => lint::all(&workspace, &mut phases),
            Action::Ci => {
                lint::all(&workspace, &mut phases)?;
                test(&workspace, &mut phases, Extent::All, &[])?;
                demo(&workspace, phases, false)
            }
        }
    }
}

fn demo(workspace: &Workspace, mut phases: Phases, keep: bool) -> Result<()> {
    let tools = phases.run("setup", || setup::for_demo(workspace))?;
    let filter = phases.run("build the filter", || build::filter(workspace, &tools.wasm))?;
    phases.run("build", || process::run(workspace.cargo("build").args(["--bin", "sluicegate", "--bin", "demo"])))?;

    // Run as built: `cargo run -p` would choose other features for that package alone and compile once more.
    let mut demo = Command::new(workspace.program("demo"));
    demo.current_dir(&workspace.root).args(keep.then_some("--keep"));
    tools.apply(&mut demo);
    build::apply(workspace, &filter, &mut demo);
    drop(phases);
    process::replace(&mut demo)
}

fn bench(workspace: &Workspace, mut phases: Phases, options: &[String]) -> Result<()> {
    let tools = phases.run("setup", || setup::for_bench(workspace))?;
    let filter = phases.run("build the filter", || build::filter(workspace, &tools.wasm))?;
    // As the README has it built: a `--package` would choose other features of the libraries it shares.
    let programs = ["--bin", "sluicegate", "--bin", "sluicegate-bench", "--bin", "bare-server"];
    phases.run("build", || process::run(workspace.cargo("build").arg("--release").args(programs)))?;

    let mut bench = Command::new(workspace.released("sluicegate-bench"));
    bench.current_dir(&workspace.root).args(options);
    tools.apply(&mut bench);
    bench.env("SLUICEGATE_FILTER_WASM", &filter).env("SLUICEGATE_BIN", workspace.released("sluicegate"));
    drop(phases);
    process::replace(&mut bench)
}

/// The limiter's suite once more on each other server; what only the embedded store runs is left out.
fn test_on_other_servers(workspace: &Workspace, phases: &mut Phases, tools: &TestTools) -> Result<()> {
    for (run, server) in setup::other_servers(workspace)? {
        let mut suite = workspace.cargo("test");
        suite.args(["--package", "sluicegate-tests", "--test", "limiter", "--"]);
        suite.args(["--skip", "bounds::", "--skip", "sequences::"]).env("SLUICEGATE_REDIS_SERVER", server);
        tools.apply(&mut suite);
        phases.run(run, || process::run(&mut suite))?;
    }
    Ok(())
}

/// The fault suite, with the rows that need a cluster or Sentinel.
fn test_faults(workspace: &Workspace, phases: &mut Phases) -> Result<()> {
    let tools = phases.run("setup", || setup::for_demo(workspace))?;
    let package = ["--package", "sluicegate-tests", "--test", "faults"];
    let service = ["--package", "sluicegate-control-plane", "--bin", "sluicegate"];
    phases.run("build", || process::run(workspace.cargo("build").args(service)))?;
    let mut faults = workspace.cargo("test");
    faults.args(package).args(["--", "--include-ignored"]);
    faults.env("SLUICEGATE_FAULT_RESULTS", workspace.root.join("tests/RESULTS.md"));
    build::apply_service(workspace, &mut faults);
    tools.apply(&mut faults);
    phases.run("faults", || process::run(&mut faults))
}

/// The compose project, as containers.
fn test_compose(workspace: &Workspace, phases: &mut Phases) -> Result<()> {
    let (wasm, containers) = phases.run("set up containers", || setup::for_compose(workspace))?;
    let filter = phases.run("build the filter", || build::filter(workspace, &wasm))?;
    let mut test = workspace.cargo("test");
    test.args(["--package", "sluicegate-tests", "--test", "compose", "--", "--nocapture"]);
    build::apply(workspace, &filter, &mut test);
    containers.apply(&mut test);
    phases.run("test the compose project", || process::run(&mut test))
}

/// How much to test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// What every change is tried with.
    Fast,
    /// Everything that needs nobody to watch it.
    All,
}

impl Extent {
    const fn of(all: bool) -> Self {
        if all { Self::All } else { Self::Fast }
    }

    /// The numbers that the limiter's suites read (`tests/tests/limiter/`); without them they use the fast tier's.
    fn apply(self, command: &mut Command) {
        if self == Self::All {
            command.env("SLUICEGATE_SEQUENCES", "100000").env("SLUICEGATE_TAKES", "10000000");
        }
    }
}

fn test(workspace: &Workspace, phases: &mut Phases, extent: Extent, cargo_test: &[String]) -> Result<()> {
    let tools = phases.run("setup", || match extent {
        Extent::Fast => setup::for_tests(workspace),
        Extent::All => setup::for_all_tests(workspace),
    })?;
    let filter = phases.run("build the filter", || build::filter(workspace, &tools.demo.wasm))?;
    phases.run("build", || process::run(workspace.cargo("build").args(["--lib", "--bins", "--tests"])))?;

    let mut native = workspace.cargo("test");
    native.arg("--no-fail-fast").args(cargo_test);
    if extent == Extent::All && cargo_test.is_empty() {
        // What needs a cluster, Sentinel or a browser is ignored otherwise.
        native.args(["--", "--include-ignored"]);
    }
    extent.apply(&mut native);
    tools.apply(&mut native);
    build::apply(workspace, &filter, &mut native);
    let mut native = phases.run("test", || process::run(&mut native));
    if extent == Extent::All && cargo_test.is_empty() {
        native = native.and(test_on_other_servers(workspace, phases, &tools));
        native = native.and(test_compose(workspace, phases));
    }

    if cargo_test.is_empty() {
        // Also after a failure: both results help to find its cause.
        let mut wasm = tools.demo.wasm.cargo(workspace, "test");
        wasm.args(["--package", "sluicegate-filter-core", "--tests"]);
        wasm.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUNNER", &tools.wasm_test_runner);
        tools.apply(&mut wasm);
        let wasm = phases.run("test as wasm", || process::run(&mut wasm));
        ensure!(wasm.is_ok() || native.is_ok(), "tests failed, natively and as wasm");
        wasm?;
    }
    native
}
