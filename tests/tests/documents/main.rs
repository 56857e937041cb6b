//! The documentation does what it says: each page's commands run as they stand, against real servers, and show what the
//! page shows. `CONTRIBUTING.md` has the rules that pages are written by.

mod checkout;
mod links;
mod machine;
mod reference;
mod rules;

use std::{cmp::Reverse, fs, path::PathBuf, process::ExitCode};

use anyhow::Result;
use libtest_mimic::{Arguments, Failed, Trial};
use sluicegate_tests::{Page, Place, repository};

use crate::{checkout::Checkout, machine::Machine};

/// Pages spend most of their time waiting for programs to start.
const AT_ONCE: usize = 4;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = arguments.test_threads.or(Some(AT_ONCE));
    let mut trials = rules::trials();
    trials.extend(reference::trials());
    trials.push(links::trial());
    let mut paths = Page::paths().expect("a folder of pages");
    // The longest first, so that none is left alone at the end.
    paths.sort_by_key(|path| Reverse(fs::metadata(repository("").join(path)).map_or(0, |data| data.len())));
    trials.extend(paths.into_iter().map(|path| {
        let name = path.display().to_string();
        Trial::test(name, move || run(path).map_err(|error| Failed::from(format!("{error:?}"))))
    }));
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn run(path: PathBuf) -> Result<()> {
    let page = Page::read(path)?;
    if page.blocks_in(&Place::Here).next().is_none() {
        return Ok(());
    }
    let checkout = Checkout::new()?;
    let page = checkout.patient_page(page);
    let machine = Machine::new()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(page.run(&Place::Here, machine.shell(checkout.path())?, machine.folder()))
}
