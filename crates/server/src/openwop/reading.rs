//! Reads events one page at a time, of the whole log or of one run, from a position.

use toolgate_gate::Caller;
use toolgate_gate::ports::ledger::{EventFilter, Freshness, PageRequest};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::event::Event;
use toolgate_model::hook::RunId;
use toolgate_model::openwop_event::RunEvent;

use crate::router::App;

/// A position to continue from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In the whole log: behind the event of this sequence.
    Log(Option<u64>),
    /// In a run: behind the event of this sequence, which was at this position of the run.
    Run(Option<(u64, u64)>),
}

impl Place {
    /// Parses [`Place::cursor`] as a position of the same kind.
    pub(super) fn behind(self, cursor: &str) -> Result<Self, Refusal> {
        let place = match self {
            Self::Log(_) => cursor.parse().ok().map(|sequence| Self::Log(Some(sequence))),
            Self::Run(_) => cursor.split_once('-').and_then(|(sequence, position)| {
                Some(Self::Run(Some((sequence.parse().ok()?, position.parse().ok()?))))
            }),
        };
        let reason = "`after` and Last-Event-ID must be the `nextCursor` of an earlier response or the id of an event";
        place.ok_or_else(|| Refusal::new(Code::InvalidCursor, reason).with("path", "after"))
    }

    /// The cursor for a client; `None` at the beginning.
    pub(super) fn cursor(self) -> Option<String> {
        match self {
            Self::Log(sequence) => sequence.map(|sequence| sequence.to_string()),
            Self::Run(place) => place.map(|(sequence, position)| format!("{sequence}-{position}")),
        }
    }

    fn sequence(self) -> Option<u64> {
        match self {
            Self::Log(sequence) => sequence,
            Self::Run(place) => place.map(|(sequence, _)| sequence),
        }
    }

    /// The position of the next event, which has this sequence in the log, and its number.
    fn next(self, sequence: u64) -> (Self, u64) {
        match self {
            Self::Log(_) => (Self::Log(Some(sequence)), sequence),
            Self::Run(before) => {
                let position = before.map_or(0, |(_, position)| position.saturating_add(1));
                (Self::Run(Some((sequence, position))), position)
            }
        }
    }
}

/// Which events are read.
#[derive(Debug, Clone)]
pub(super) struct Reading {
    pub(super) filter: EventFilter,
    pub(super) place: Place,
}

/// An event, as it is stored and as the caller is shown it.
pub(super) struct Seen {
    pub(super) place: Place,
    pub(super) event: Event,
    pub(super) shown: RunEvent,
}

/// Events, each with its position.
pub(super) struct Events {
    pub(super) events: Vec<Seen>,
    /// Whether more are there already.
    pub(super) more: bool,
}

impl Events {
    /// The position after the last one.
    pub(super) fn end(&self) -> Option<Place> {
        self.events.last().map(|seen| seen.place)
    }
}

impl Reading {
    /// The events of a run, from its beginning.
    pub(super) fn of_run(run: &RunId) -> Self {
        let filter = EventFilter { run: Some(run.as_str().to_owned()), ..EventFilter::default() };
        Self { filter, place: Place::Run(None) }
    }

    /// The next events, without moving on. Nothing of the ledger is held once they are here.
    pub(super) async fn page(
        &self,
        app: &App,
        caller: &Caller,
        limit: u32,
        freshness: Freshness,
    ) -> Result<Events, Refusal> {
        let request = PageRequest { after: self.place.sequence().map(|sequence| sequence.to_string()), limit };
        let page = app.gate.audit.visible_events(caller, self.filter.clone(), request, freshness).await?;
        let mut place = self.place;
        let mut events = Vec::with_capacity(page.items.len());
        for logged in page.items {
            let (here, counted) = place.next(logged.sequence);
            let stored = logged.read()?;
            let shown = RunEvent::of(&stored, counted);
            let mut shown = shown.map_err(|damaged| Refusal::new(Code::Internal, damaged.to_string()))?;
            app.gate.audit.blind_event(caller, &mut shown);
            events.push(Seen { place: here, event: stored.event, shown });
            place = here;
        }
        Ok(Events { events, more: page.next.is_some() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_reads_back_from_its_cursor() {
        for place in [Place::Log(Some(0)), Place::Log(Some(41)), Place::Run(Some((41, 3)))] {
            assert_eq!(place.behind(&place.cursor().unwrap()), Ok(place));
        }
        assert_eq!((Place::Log(None).cursor(), Place::Run(None).cursor()), (None, None));
        for (place, wrong) in [(Place::Log(None), "41-3"), (Place::Run(None), "41"), (Place::Run(None), "a-b")] {
            assert_eq!(place.behind(wrong).unwrap_err().code(), Code::InvalidCursor);
        }
        assert!(Place::Log(None).behind("-1").is_err());
    }

    #[test]
    fn a_run_is_counted_from_zero_and_the_log_by_its_own_sequence() {
        let (first, counted) = Place::Run(None).next(40);
        assert_eq!((first, counted), (Place::Run(Some((40, 0))), 0));
        assert_eq!(first.next(43), (Place::Run(Some((43, 1))), 1));
        assert_eq!(Place::Log(Some(7)).next(9), (Place::Log(Some(9)), 9));
    }
}
