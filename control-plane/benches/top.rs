//! What it costs a check to be counted: `cargo bench -p sluicegate-control-plane --bench top`.

use std::{
    io::{self, Write as _},
    time::Instant,
};

use sluicegate_control_plane::top::{Outcome, Top};
use sluicegate_wire::Name;

const CHECKS: u32 = 2_000_000;

fn main() -> io::Result<()> {
    let policy: Name = "api".parse().map_err(io::Error::other)?;
    for (what, subjects) in [("one subject", 1), ("100 subjects", 100), ("a million subjects, each once", 1_000_000)] {
        let names: Vec<String> = (0..subjects).map(|index| format!("203.0.113.{index}")).collect();
        for threads in [1, 2] {
            let top = Top::new(Instant::now());
            let start = Instant::now();
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| {
                        for name in names.iter().cycle().take(CHECKS as usize) {
                            top.record(&policy, name, Outcome::Taken, 1, Instant::now());
                        }
                    });
                }
            });
            let each_ns = start.elapsed().as_nanos() / u128::from(CHECKS);
            writeln!(io::stdout(), "{what}, {threads} threads: {each_ns} ns a check on each")?;
        }
    }
    Ok(())
}
