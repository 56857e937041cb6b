//! The signals that end the service.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGTERM and SIGINT, caught from when this exists.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Catches the signals from now on. Must be called inside a Tokio runtime.
    ///
    /// # Errors
    /// When the system has no room for a handler.
    pub fn install() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for the first signal. A second one ends the process at once, with 128 and the signal's number as is the
    /// custom of shells.
    pub async fn stop(mut self) {
        let signal = self.next().await;
        tracing::info!(signal = name(signal), "stopping; a second signal ends at once");
        tokio::spawn(async move {
            let signal = self.next().await;
            tracing::warn!(signal = name(signal), "ended without finishing what is in flight");
            std::process::exit(128 + signal.as_raw_value());
        });
    }

    async fn next(&mut self) -> SignalKind {
        tokio::select! {
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = self.interrupt.recv() => SignalKind::interrupt(),
        }
    }
}

fn name(signal: SignalKind) -> &'static str {
    if signal == SignalKind::terminate() { "SIGTERM" } else { "SIGINT" }
}
