//! The store at fault: one row a fault, each with real servers under steady load. Prints a table of what was measured.
//!
//! `cargo xtask test --faults` runs all rows; those that need a cluster or Sentinel are ignored otherwise, and run in
//! `--all`. Rows run one after another, so that they measure the fault and not each other.

mod cluster;
mod cut;
mod exact;
mod gone;
mod load;
mod mid_traffic;
mod row;
mod sentinel;
mod table;

use std::process::ExitCode;

use libtest_mimic::Arguments;
use row::{Row, Servers};

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |servers, fault, run: row::Run| rows.push(Row { servers, fault, run });
    add(Servers::One, "Redis killed and restarted empty", || Box::pin(gone::killed()));
    add(Servers::One, "Redis frozen 5 s", || Box::pin(gone::frozen()));
    add(Servers::One, "an address that drops packets at start", || Box::pin(gone::drops_packets()));
    add(Servers::One, "a master demoted to replica", || Box::pin(gone::demoted()));
    add(Servers::One, "maxmemory reached", || Box::pin(gone::full()));
    add(Servers::One, "Redis busy with a slow script", || Box::pin(gone::busy()));
    add(Servers::One, "reply cut after the script ran", || Box::pin(cut::one()));
    add(Servers::One, "SCRIPT FLUSH in mid-traffic", || Box::pin(mid_traffic::scripts_flushed()));
    add(Servers::One, "CLIENT KILL in mid-traffic", || Box::pin(mid_traffic::clients_killed()));
    add(Servers::One, "two services on one bucket", || Box::pin(exact::two_services()));
    add(Servers::One, "10,000 concurrent checks on one key", || Box::pin(exact::ten_thousand_at_once()));
    add(Servers::One, "more at once than may be under way", || Box::pin(exact::flood()));
    add(Servers::Many, "Sentinel: reply cut after the script ran", || Box::pin(cut::sentinel()));
    add(Servers::Many, "Sentinel: master killed, failover", || Box::pin(sentinel::killed()));
    add(Servers::Many, "Sentinel: failover of a living master", || Box::pin(sentinel::replaced()));
    add(Servers::Many, "cluster: reply cut after the script ran", || Box::pin(cut::cluster()));
    add(Servers::Many, "cluster: master killed, failover", || Box::pin(cluster::master_killed()));
    add(Servers::Many, "cluster: master frozen", || Box::pin(cluster::master_frozen()));
    add(Servers::Many, "cluster: slots migrated", || Box::pin(cluster::slots_migrated()));
    add(Servers::Many, "cluster: one slot of a check denies or fails", || Box::pin(cluster::checks_over_slots()));
    add(Servers::Many, "cluster: one constant key, four services", || Box::pin(exact::constant_key()));
    rows
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let table = table::Table::default();
    let trials = rows().into_iter().map(|row| row.into_trial(&table)).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    table.print();
    conclusion.exit_code()
}
