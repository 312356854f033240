//! Reading the events that are in the log.

use std::ops::Range;

use toolgate_gate::ports::ledger::{EventFilter, LoggedEvent, Page, PageRequest};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::context::ContextId;
use toolgate_model::principal::{PrincipalId, TenantId};

use super::Operation;
use super::audit::read_head;
use super::event_batches::{Batch, BatchEvent, BatchReader, Field, Heading};
use super::event_pages::PageSearch;
use super::event_times::Period;
use crate::sql::{Failure, SqlError};
use crate::transaction::Transaction;

/// Reads events that are in the log, in order.
pub struct ListEvents {
    pub tenant: TenantId,
    pub filter: EventFilter,
    /// Which page; the cursor is a sequence.
    pub page: PageRequest,
}

impl Operation for ListEvents {
    type Output = Page<LoggedEvent>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Page<LoggedEvent>, Failure> {
        let mut from = self.first()?;
        // Events that are not integrated yet cannot be proved yet.
        let size = read_head(transaction, &self.tenant).await?.map_or(0, |head| head.head.size);
        let sought = PageSearch::of(&self.filter);
        // The events of a run are found quickly: searching by time first would only take longer.
        let period = if self.filter.run.is_some() { None } else { Period::of(&self.filter) };
        let mut found = Vec::new();
        while from < size && self.missing(&found) > 0 {
            let stretches = match &period {
                Some(period) => period.stretches(transaction, &self.tenant, from).await?,
                None => std::iter::once(from..size).collect(),
            };
            let Some(last) = stretches.last() else { break };
            from = last.end;
            for stretch in stretches {
                let stretch = stretch.start..stretch.end.min(size);
                self.look_through(transaction, sought.as_ref(), stretch, &mut found).await?;
            }
        }
        Ok(Page::cut(found, self.page.limit, |event| event.sequence.to_string()))
    }
}

impl ListEvents {
    /// The first position of the page.
    fn first(&self) -> Result<u64, Refusal> {
        let Some(after) = &self.page.after else { return Ok(0) };
        let after: u64 = after
            .parse()
            .map_err(|_| Refusal::new(Code::InvalidCursor, "`cursor` must come from an earlier response"))?;
        Ok(after.saturating_add(1))
    }

    /// The number of events still missing, one more than requested: it shows whether there is a next page.
    fn missing(&self, found: &[LoggedEvent]) -> usize {
        let wanted = usize::try_from(self.page.limit.saturating_add(1)).unwrap_or(usize::MAX);
        wanted.saturating_sub(found.len())
    }

    /// Reads the matching events of a range of the log, from those of its pages that may have any.
    async fn look_through<T: Transaction>(
        &self,
        transaction: &mut T,
        sought: Option<&PageSearch<'_>>,
        mut stretch: Range<u64>,
        found: &mut Vec<LoggedEvent>,
    ) -> Result<(), SqlError> {
        while stretch.start < stretch.end && self.missing(found) > 0 {
            let parts = match sought {
                Some(sought) => sought.stretches(transaction, &self.tenant, &stretch).await?,
                None => std::iter::once(stretch.clone()).collect(),
            };
            let Some(last) = parts.last() else { return Ok(()) };
            stretch.start = last.end;
            for part in parts {
                if self.missing(found) == 0 {
                    break;
                }
                self.read(transaction, part.start..part.end.min(stretch.end), found).await?;
            }
        }
        Ok(())
    }

    /// Reads the matching events of a part of the log.
    async fn read<T: Transaction>(
        &self,
        transaction: &mut T,
        stretch: Range<u64>,
        found: &mut Vec<LoggedEvent>,
    ) -> Result<(), SqlError> {
        let mut reader = BatchReader::new(&self.tenant, stretch.clone());
        loop {
            let batches = reader.next(transaction).await?;
            if batches.is_empty() {
                return Ok(());
            }
            for event in batches.iter().flat_map(Batch::events) {
                let BatchEvent { sequence, heading, canonical } = event?;
                if stretch.contains(&sequence) && fits(&self.filter, &heading) {
                    found.push(LoggedEvent { sequence, canonical: canonical.to_owned() });
                    if self.missing(found) == 0 {
                        return Ok(());
                    }
                }
            }
        }
    }
}

/// Whether an event matches a filter.
fn fits(filter: &EventFilter, heading: &Heading<'_>) -> bool {
    let is = |field, wanted: Option<&str>| wanted.is_none() || wanted == heading.get(field);
    let kind = heading.get(Field::Kind).unwrap_or_default();
    (filter.kinds.is_empty() || filter.kinds.iter().any(|wanted| wanted == kind))
        && is(Field::Run, filter.run.as_deref())
        && is(Field::Tool, filter.tool.as_deref())
        && is(Field::Actor, filter.actor.as_ref().map(PrincipalId::as_str))
        && is(Field::Agent, filter.agent.as_ref().map(PrincipalId::as_str))
        && is(Field::Intent, filter.intent.as_ref().map(ContextId::as_str))
        && is(Field::Task, filter.task.as_ref().map(ContextId::as_str))
        && filter.since.is_none_or(|since| heading.1 >= since.as_millis())
        && filter.until.is_none_or(|until| heading.1 < until.as_millis())
}
