//! One fault, and what is measured of it.

use std::{future::Future, pin::Pin, time::Duration};

use libtest_mimic::{Failed, Trial};
use sluicegate_tests::Samples;

use crate::table::Table;

/// What a row's future is made by.
pub(crate) type Run = fn() -> Pin<Box<dyn Future<Output = Outcome>>>;

/// One fault.
pub(crate) struct Row {
    pub(crate) servers: Servers,
    pub(crate) fault: &'static str,
    pub(crate) run: Run,
}

/// What a row starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Servers {
    /// One Redis: part of every test run.
    One,
    /// A cluster or Sentinel.
    Many,
}

/// What was measured; what must hold was asserted before.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) asked: usize,
    pub(crate) allowed: usize,
    pub(crate) denied: usize,
    pub(crate) failed: usize,
    pub(crate) median: Duration,
    pub(crate) worst: Duration,
    /// From the end of the fault to the first decision.
    pub(crate) back_after: Option<Duration>,
    /// What else was seen.
    pub(crate) seen: String,
}

impl Outcome {
    pub(crate) fn of(samples: &Samples, back_after: Option<Duration>, seen: impl Into<String>) -> Self {
        Self {
            asked: samples.len(),
            allowed: samples.allowed(),
            denied: samples.denied(),
            failed: samples.failed(),
            median: samples.median(),
            worst: samples.worst(),
            back_after,
            seen: seen.into(),
        }
    }
}

impl Row {
    pub(crate) fn into_trial(self, table: &Table) -> Trial {
        let table = table.clone();
        let Self { servers, fault, run } = self;
        let trial = Trial::test(fault, move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
            let outcome = runtime.block_on(run());
            table.add(fault, outcome);
            Ok::<(), Failed>(())
        });
        trial.with_ignored_flag(servers == Servers::Many)
    }
}
