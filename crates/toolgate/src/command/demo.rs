//! `toolgate demo`: a tour with a real gate on a temporary ledger and a small payments service. However it ends, nothing is
//! left behind.

use toolgate_cli::{Demo, Failure, stop_signals};

use self::gate::DemoGate;
use self::narration::Narration;
use self::payments::Payments;
use self::tour::Tour;

mod gate;
mod narration;
mod payments;
mod tour;

pub(super) async fn demo(command: Demo) -> Result<(), Failure> {
    let mut stop = stop_signals()?;
    let payments = Payments::start().await?;
    let gate = tokio::select! {
        started = DemoGate::start() => started?,
        () = &mut stop => return Err(cut_off()),
    };
    let outcome = tokio::select! {
        outcome = run_tour(command.keep, &gate, &payments) => outcome,
        () = &mut stop => if command.keep { Ok(()) } else { Err(cut_off()) },
    };
    gate.stop().await?;
    outcome?;
    Narration::of_terminal().closing(command.keep)
}

async fn run_tour(keep: bool, gate: &DemoGate, payments: &Payments) -> Result<(), Failure> {
    let mut tour = Tour::new(gate, payments, Narration::of_terminal())?;
    tour.run_tour().await?;
    if keep {
        tour.show_what_runs().await?;
        std::future::pending::<()>().await;
    }
    Ok(())
}

fn cut_off() -> Failure {
    Failure::Said("the demo was interrupted; nothing is left behind".to_owned())
}
