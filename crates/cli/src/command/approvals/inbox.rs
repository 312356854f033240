//! The live inbox: connects screen, keyboard and event stream to its state. Ending it decides nothing.

use std::pin::Pin;
use std::time::Duration;

use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::MissedTickBehavior;

use self::keyboard::Decoder;
use self::state::{Effect, Inbox};
use self::terminal::Terminal;
use super::approval::Approval;
use super::feed::{Start, follow};
use crate::client::{Client, ClientError};
use crate::clock;
use crate::command::Failure;
use crate::command::stop::stop_signals;
use crate::output::Report;

mod card;
mod keyboard;
mod panel;
mod press;
mod screen;
mod state;
mod terminal;
#[cfg(test)]
mod testing;
mod text;

/// How often the remaining times are redrawn.
const TICK: Duration = Duration::from_millis(250);

/// A decision in flight.
type Sending<'a> = Pin<Box<dyn Future<Output = (String, Result<Value, ClientError>)> + 'a>>;

/// An approval as text, without the inbox.
pub(super) fn page(approval: &Approval, columns: usize) -> String {
    let lines = card::card(approval, clock::now(), columns);
    let id = format!("{} ({})\n", crate::output::clean(&approval.id), crate::output::clean(&approval.status));
    lines.iter().fold(id, |text, line| format!("{text}{}\n", line.plain().trim_end()))
}

pub(super) async fn run(client: &Client, url: &str) -> Result<Report, Failure> {
    let failed = |error| Failure::io("the terminal", error);
    let mut stop = stop_signals()?;
    let mut resized = signal(SignalKind::window_change()).map_err(failed)?;
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (sender, mut news) = unbounded_channel();
    let mut following = Box::pin(follow(client, None, Start::Waiting, sender));
    let mut sending: Option<Sending<'_>> = None;

    let terminal = Terminal::take().map_err(failed)?;
    let mut keyboard = keyboard::listen().map_err(failed)?;
    let mut decoder = Decoder::default();
    let mut inbox = Inbox::new(url, Terminal::size().map_err(failed)?, clock::now());
    loop {
        terminal.draw(&screen::screen(&inbox, clock::now())).map_err(failed)?;
        tokio::select! {
            () = &mut stop => break,
            bytes = keyboard.recv() => {
                // The end of the input ends the inbox.
                let Some(bytes) = bytes else { break };
                match inbox.press(&decoder.read(&bytes), clock::now()) {
                    Some(Effect::Quit) => break,
                    Some(Effect::Decide { id, decision }) => {
                        sending = Some(Box::pin(async move {
                            let outcome = decision.send(client, &id).await;
                            (id, outcome)
                        }));
                    }
                    None => {}
                }
            }
            _ = resized.recv() => inbox.resize(Terminal::size().map_err(failed)?),
            Some(described) = news.recv() => inbox.receive(described, clock::now()),
            outcome = &mut following => {
                outcome?;
                break;
            }
            (id, outcome) = on_its_way(&mut sending) => {
                sending = None;
                inbox.decided(&id, outcome, clock::now());
            }
            _ = tick.tick() => {}
        }
    }
    Ok(Report::new(Value::Null, ""))
}

/// Completes with the decision in flight; never if there is none.
async fn on_its_way(sending: &mut Option<Sending<'_>>) -> (String, Result<Value, ClientError>) {
    match sending {
        Some(sending) => sending.await,
        None => std::future::pending().await,
    }
}
