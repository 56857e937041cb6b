//! One side of a comparison, and how sides take their turns.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::{
    load::{CONNECTIONS, Load, Seen},
    rounds,
    setting::Setting,
    tally::Tally,
    usage,
};

/// Before each turn: connections, caches and the machine's clock rate come to what they are under load.
const WARM_UP: Duration = Duration::from_secs(1);

/// What is measured: a load on servers.
#[derive(Clone, Debug)]
pub(crate) struct Side {
    name: &'static str,
    load: Load,
    answers: Expected,
    servers: Vec<u32>,
    equal: Vec<Tally>,
    noted: Vec<Tally>,
    slack: u64,
}

/// What all answers must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    Passed,
    /// All but a few a second, which the limit allows.
    Denied,
}

/// One turn of a side.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    /// What the load tool saw.
    pub(crate) seen: Seen,
    /// CPU time that the servers used, in µs.
    pub(crate) cpu_us: u64,
    /// How much each noted tally grew.
    pub(crate) noted: Vec<u64>,
}

impl Turn {
    /// Answers a second.
    pub(crate) fn rate(&self) -> f64 {
        self.seen.answers as f64 / self.seen.elapsed.as_secs_f64()
    }

    /// CPU time of the servers for one answer, in µs.
    pub(crate) fn cpu_us_each(&self) -> f64 {
        self.cpu_us as f64 / self.seen.answers as f64
    }

    /// How much the first noted tally grew for each answer.
    pub(crate) fn noted_each(&self) -> f64 {
        self.noted.first().map_or(0.0, |noted| *noted as f64 / self.seen.answers as f64)
    }
}

impl Side {
    /// A load whose every answer must be 2xx.
    pub(crate) fn new(name: &'static str, load: Load) -> Self {
        let (servers, equal, noted) = (Vec::new(), Vec::new(), Vec::new());
        Self { name, load, answers: Expected::Passed, servers, equal, noted, slack: 2 * CONNECTIONS }
    }

    /// A load whose answers must be denials, but for a few.
    pub(crate) fn denied(self) -> Self {
        Self { answers: Expected::Denied, ..self }
    }

    /// Counts the CPU time of these processes.
    pub(crate) fn on(mut self, servers: impl IntoIterator<Item = u32>) -> Self {
        self.servers.extend(servers);
        self
    }

    /// Fails unless this grows as much as there are answers, up to those under way at the beginning and at the end.
    pub(crate) fn counted_by(mut self, tally: Tally) -> Self {
        self.equal.push(tally);
        self
    }

    /// The same with more that may be on the way, such as tokens of a lease.
    pub(crate) fn within(mut self, slack: u64) -> Self {
        self.slack += slack;
        self
    }

    /// Notes how much this grows.
    pub(crate) fn noting(mut self, tally: Tally) -> Self {
        self.noted.push(tally);
        self
    }

    /// Its name.
    pub(crate) const fn name(&self) -> &'static str {
        self.name
    }

    /// One turn.
    ///
    /// # Errors
    /// When an answer is wrong, or the servers counted otherwise than the load tool.
    pub(crate) async fn turn(&self, time: Duration) -> Result<Turn> {
        let turn = async {
            self.load.run(WARM_UP).await?;
            let (cpu_us, equal, noted) = (self.cpu_us()?, read(&self.equal).await?, read(&self.noted).await?);
            let seen = self.load.run(time).await?;
            let cpu_us = self.cpu_us()? - cpu_us;
            let equal = grown(&equal, &read(&self.equal).await?);
            let noted = grown(&noted, &read(&self.noted).await?);
            self.check(&seen, &equal)?;
            Ok::<_, anyhow::Error>(Turn { seen, cpu_us, noted })
        };
        turn.await.with_context(|| self.name.to_owned())
    }

    fn cpu_us(&self) -> Result<u64> {
        self.servers.iter().map(|pid| usage::cpu_us(*pid)).sum()
    }

    fn check(&self, seen: &Seen, equal: &[u64]) -> Result<()> {
        ensure!(seen.broken == 0, "{} requests were not answered: {seen:?}", seen.broken);
        match self.answers {
            Expected::Passed => ensure!(seen.refused == 0, "{} wrong answers: {seen:?}", seen.refused),
            Expected::Denied => {
                let allowed = seen.answers - seen.refused;
                // One a second, and what the bucket held.
                ensure!(allowed <= seen.elapsed.as_secs() + 2, "{allowed} answers were no denials: {seen:?}");
            }
        }
        for (tally, grown) in self.equal.iter().zip(equal) {
            let off = grown.abs_diff(seen.answers);
            ensure!(off <= self.slack, "{} answers, but {tally:?} grew by {grown}", seen.answers);
        }
        Ok(())
    }
}

async fn read(tallies: &[Tally]) -> Result<Vec<u64>> {
    let mut values = Vec::new();
    for tally in tallies {
        values.push(tally.read().await?);
    }
    Ok(values)
}

fn grown(before: &[u64], after: &[u64]) -> Vec<u64> {
    before.iter().zip(after).map(|(before, after)| after.saturating_sub(*before)).collect()
}

/// Lets the sides take turns, as many as the setting has rounds. Gives each side's, round by round.
///
/// # Errors
/// As [`Side::turn`].
pub(crate) async fn by_turns(setting: &Setting, sides: &[Side]) -> Result<Vec<Vec<Turn>>> {
    let mut turns = vec![Vec::new(); sides.len()];
    for round in 0..setting.rounds {
        for index in rounds::turns(round, sides.len()) {
            let side = &sides[index];
            let turn = side.turn(setting.turn).await?;
            eprintln!(
                "  round {}: {:<24} {:>8.0} a second, {:>6.1} µs CPU each, p50 {:.2?}, p99 {:.2?}",
                round + 1,
                side.name(),
                turn.rate(),
                turn.cpu_us_each(),
                turn.seen.p50,
                turn.seen.p99
            );
            turns[index].push(turn);
        }
    }
    Ok(turns)
}

/// One number of each turn.
pub(crate) fn each(turns: &[Turn], number: impl Fn(&Turn) -> f64) -> Vec<f64> {
    turns.iter().map(number).collect()
}
