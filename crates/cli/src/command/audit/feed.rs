//! Delivers events to a reader in order and without gaps: the next page is requested when the reader has consumed the
//! previous one, and only consumed events count as delivered. A line may be delivered twice, but none is lost.

use std::time::Duration;

use toolgate_api::audit::{EventPage, EventQuery, ListEvents};
use toolgate_api::parameters::{Cursor, Limit};
use toolgate_model::event::{DamagedEvent, StoredEvent};

use super::output_writer::{OutputWriter, Taken};
use super::position::{Position, PositionFile};
use crate::client::Client;
use crate::command::Failure;
use crate::command::stop::Stop;
use crate::command::values::typed_option;
use crate::output::{clean, say};
use crate::siem::LineFormat;

/// Events per page: few enough that even large ones fit into one response.
const PAGE: u32 = 200;
/// How often the end of the log is polled.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The first delay before a request is repeated; doubled each time.
const FIRST_RETRY: Duration = Duration::from_millis(500);
const MAX_RETRY: Duration = Duration::from_secs(30);

pub(crate) struct Selection {
    /// Empty means all.
    pub(crate) types: Vec<String>,
    pub(crate) agent: Option<String>,
}

impl Selection {
    fn is_everything(&self) -> bool {
        self.types.is_empty() && self.agent.is_none()
    }

    fn query(&self, after: Option<u64>) -> Result<EventQuery, Failure> {
        // The gate filters by one type; several are filtered here.
        let kind = if let [kind] = self.types.as_slice() { Some(kind.clone()) } else { None };
        Ok(EventQuery { kind, agent_id: typed_option("agent_id", self.agent.as_ref())?, ..page_after(after, PAGE) })
    }

    fn takes(&self, event: &StoredEvent) -> bool {
        self.types.is_empty() || self.types.iter().any(|kind| kind == event.event.payload.name())
    }
}

pub(crate) struct Feed<'a> {
    client: &'a Client,
    format: LineFormat,
    selection: Selection,
    position: PositionFile,
    /// The last event that was read.
    after: Option<u64>,
    /// Ends an export that follows the log; without it, the export ends at the end of the log.
    stop: Option<Stop>,
}

enum Halt {
    /// It was stopped, or its reader is gone.
    Ended,
    Failed(Failure),
}

impl<F: Into<Failure>> From<F> for Halt {
    fn from(failure: F) -> Self {
        Self::Failed(failure.into())
    }
}

impl<'a> Feed<'a> {
    /// Continues at the saved position, or starts after this event.
    pub(crate) fn new(
        client: &'a Client,
        format: LineFormat,
        selection: Selection,
        position: PositionFile,
        after: Option<u64>,
        stop: Option<Stop>,
    ) -> Self {
        let after = position.position().map(|position| position.sequence).or(after);
        Self { client, format, selection, position, after, stop }
    }

    pub(crate) async fn run(mut self, mut output_writer: OutputWriter) -> Result<(), Failure> {
        match self.run_export(&mut output_writer).await {
            Ok(()) | Err(Halt::Ended) => Ok(()),
            Err(Halt::Failed(failure)) => Err(failure),
        }
    }

    async fn run_export(&mut self, output_writer: &mut OutputWriter) -> Result<(), Halt> {
        self.recognise_log().await?;
        loop {
            let page = self.ask(&self.selection.query(self.after)?).await?;
            let is_last = page.next_cursor.0.is_none();
            let events = self.read(page)?;
            self.hand_over(&events, output_writer).await?;
            match (is_last, &self.stop) {
                (true, None) => return Ok(()),
                (true, Some(_)) => self.pause(POLL_INTERVAL).await?,
                (false, _) => {}
            }
        }
    }

    /// A position in another log would skip events of this one.
    async fn recognise_log(&mut self) -> Result<(), Halt> {
        let Some(Position { event, sequence }) = self.position.position().cloned() else { return Ok(()) };
        let page = self.ask(&page_after(sequence.checked_sub(1), 1)).await?;
        if page.events.first().and_then(|first| first.get("id")?.as_str()) == Some(&event) {
            return Ok(());
        }
        Err(Halt::Failed(Failure::Said(format!(
            "{} belongs to another log: event {sequence} of this log is not {}; use another --state file",
            self.position.name(),
            clean(&event),
        ))))
    }

    /// INVARIANT: events follow those that were read before, without a gap if there is no filter.
    fn read(&mut self, page: EventPage) -> Result<Vec<StoredEvent>, Failure> {
        let mut events = Vec::with_capacity(page.events.len());
        for value in page.events {
            let event = StoredEvent::from_shown(value)?;
            let next = self.after.map_or(0, |after| after.saturating_add(1));
            if event.sequence < next || (event.sequence > next && self.selection.is_everything()) {
                let found = event.sequence;
                return Err(Failure::Said(format!("the gate returned event {found} instead of event {next}")));
            }
            self.after = Some(event.sequence);
            events.push(event);
        }
        Ok(events)
    }

    /// Writes the events, and saves the position of the reader.
    async fn hand_over(&mut self, events: &[StoredEvent], output_writer: &mut OutputWriter) -> Result<(), Halt> {
        let mut lines = Vec::new();
        let mut ends = Vec::with_capacity(events.len());
        for event in events.iter().filter(|event| self.selection.takes(event)) {
            lines.extend(self.format.line(event)?);
            ends.push((lines.len(), event));
        }
        let written = lines.len();
        let taken = tokio::select! {
            taken = output_writer.write(lines) => taken.map_err(|error| Failure::io("standard output", error))?,
            () = stopped(&mut self.stop) => return Err(Halt::Ended),
        };
        let count = match taken {
            Taken::All => written,
            Taken::Gone(count) => count,
        };
        if let Some((_, last)) = ends.iter().take_while(|(end, _)| *end <= count).last() {
            self.position.keep(Position::from(*last))?;
        }
        if taken == Taken::All { Ok(()) } else { Err(Halt::Ended) }
    }

    /// An export that follows the log also waits for a gate that is restarted.
    async fn ask(&mut self, query: &EventQuery) -> Result<EventPage, Halt> {
        let mut retry = None;
        loop {
            let response = tokio::select! {
                response = self.client.to::<ListEvents>().query(query).send() => response,
                () = stopped(&mut self.stop) => return Err(Halt::Ended),
            };
            let error = match response {
                Ok(page) => {
                    if retry.is_some() {
                        say("toolgate: connected again");
                    }
                    return Ok(page);
                }
                Err(error) => error,
            };
            if self.stop.is_none() || !error.may_pass() {
                return Err(error.into());
            }
            let pause = retry.map_or(FIRST_RETRY, |before: Duration| (before * 2).min(MAX_RETRY));
            let seconds = pause.as_secs_f32();
            say(&format!("toolgate: {}; retrying in {seconds} s", clean(&error.to_string())));
            self.pause(pause).await?;
            retry = Some(pause);
        }
    }

    /// Waits, or ends with the export.
    async fn pause(&mut self, pause: Duration) -> Result<(), Halt> {
        match tokio::time::timeout(pause, stopped(&mut self.stop)).await {
            Ok(()) => Err(Halt::Ended),
            Err(_) => Ok(()),
        }
    }
}

fn page_after(after: Option<u64>, limit: u32) -> EventQuery {
    let cursor = after.map(|sequence| Cursor(sequence.to_string()));
    EventQuery { limit: Some(Limit(limit)), cursor, ..EventQuery::default() }
}

/// Completes when the export is stopped; never if it cannot be.
async fn stopped(stop: &mut Option<Stop>) {
    match stop {
        Some(stop) => stop.await,
        None => std::future::pending().await,
    }
}

impl From<DamagedEvent> for Failure {
    fn from(damaged: DamagedEvent) -> Self {
        let look = "inspect it with `toolgate audit events --cursor`";
        match damaged.sequence {
            Some(sequence) => Self::Said(format!("{damaged}; {look}, and skip it with --after {sequence}")),
            None => Self::Said(format!("{damaged}; {look}")),
        }
    }
}
