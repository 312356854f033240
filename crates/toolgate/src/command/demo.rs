//! `toolgate demo`: the product in one minute. A real gate on a temporary store, a small payments service, and a tour of
//! what the gate allows, refuses and writes down. Whichever way it ends, nothing stays behind.

use clap::Args;

use self::gate::DemoGate;
use self::narration::Narration;
use self::payments::Payments;
use self::tour::Tour;
use super::Failure;
use super::stop::stop_signals;

mod gate;
mod narration;
mod payments;
mod tour;

/// See what the gate does, in a minute and leaving nothing behind
///
/// Starts a gate on a temporary store and a small payments service, both on loopback, and walks through an allowed call,
/// refusals, a rate limit, a delegation and its end, and the proof of the log. Fails where anything goes differently than
/// told.
#[derive(Args)]
#[command(after_help = "Example:\n  toolgate demo --keep")]
pub(crate) struct Demo {
    /// Leave both running afterwards, with their addresses and keys shown, until Ctrl-C
    #[arg(long)]
    keep: bool,
}

impl Demo {
    /// Starts both, walks, and ends both.
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let mut stop = stop_signals()?;
        let payments = Payments::start().await?;
        let gate = tokio::select! {
            started = DemoGate::start() => started?,
            () = &mut stop => return Err(cut_off()),
        };
        let outcome = tokio::select! {
            outcome = self.run_tour(&gate, &payments) => outcome,
            () = &mut stop => if self.keep { Ok(()) } else { Err(cut_off()) },
        };
        gate.stop().await?;
        outcome?;
        Narration::of_terminal().closing(self.keep)
    }

    async fn run_tour(&self, gate: &DemoGate, payments: &Payments) -> Result<(), Failure> {
        let mut tour = Tour::new(gate, payments, Narration::of_terminal())?;
        tour.run_tour().await?;
        if self.keep {
            tour.show_what_runs().await?;
            std::future::pending::<()>().await;
        }
        Ok(())
    }
}

fn cut_off() -> Failure {
    Failure::Said("the demo was cut off; nothing of it is left".to_owned())
}
