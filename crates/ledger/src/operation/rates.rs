//! Rates: how many calls a grant allows in any hour, exactly. The last calls of a grant are in a ring with as many
//! slots as it allows; the next call needs the oldest of them to be an hour old.

use std::collections::BTreeMap;
use std::time::Duration;

use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::id::GrantId;
use toolgate_model::time::Timestamp;

use super::Operation;
use super::listing::padded;
use crate::sql::{Failure, Value};
use crate::transaction::{Change, Rows, Transaction, values};

const HOUR: Duration = Duration::from_secs(3600);

/// The rings of some grants, held by the transaction.
#[derive(Default)]
pub struct Rates(BTreeMap<GrantId, Ring>);

pub struct Reserved {
    counters: Vec<Vec<Value<'static>>>,
    places: Vec<Vec<Value<'static>>>,
}

struct Ring {
    limit: i64,
    /// The number of calls so far; the next one takes the slot of this number modulo the limit.
    taken: i64,
    taken_before: i64,
    /// The slots that this transaction can reach, with the times of their calls.
    times: BTreeMap<i64, Timestamp>,
}

impl Rates {
    /// Locks the rings for these uses: each grant as often as a call may use it.
    pub async fn hold<T: Transaction>(
        transaction: &mut T,
        uses: impl Iterator<Item = (GrantId, u64)>,
    ) -> Result<Self, Failure> {
        let mut limits: BTreeMap<GrantId, (i64, i64)> = BTreeMap::new();
        for (grant, limit) in uses {
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            limits.entry(grant).or_insert((limit, 0)).1 += 1;
        }
        if limits.is_empty() {
            return Ok(Self::default());
        }
        let mut taken = counters(transaction, limits.keys().copied()).await?;
        let missing: Vec<GrantId> = limits.keys().filter(|grant| !taken.contains_key(grant)).copied().collect();
        if !missing.is_empty() {
            let rows: Vec<_> = missing.iter().map(|grant| vec![Value::from(*grant)]).collect();
            // If another transaction creates the same row, this waits for it and then sees its changes.
            let make = "INSERT INTO rates (grant_id, taken) VALUES ($1, 0) ON CONFLICT (grant_id) DO NOTHING";
            transaction.execute_many(make, &rows).await?;
            taken.extend(counters(transaction, missing.into_iter()).await?);
        }
        let mut rings = BTreeMap::new();
        for (grant, (limit, uses)) in limits {
            let taken = taken.get(&grant).copied().unwrap_or(0);
            let times = reachable(transaction, grant, limit, taken, uses).await?;
            rings.insert(grant, Ring { limit, taken, taken_before: taken, times });
        }
        Ok(Self(rings))
    }

    /// Reserves one call in all of these grants, or returns the one with the longest wait.
    pub fn reserve(&mut self, grants: &[(GrantId, Option<u64>)], now: Timestamp) -> Result<(), Refusal> {
        let rings = grants.iter().filter_map(|(grant, _)| Some((*grant, self.0.get(grant)?)));
        let full = rings.filter_map(|(grant, ring)| Some((ring.wait(now)?, grant, ring.limit)));
        if let Some((wait, grant, limit)) = full.max() {
            return Err(refusal(wait, grant, limit));
        }
        for (grant, _) in grants {
            if let Some(ring) = self.0.get_mut(grant) {
                ring.times.insert(ring.next(), now);
                ring.taken = ring.taken.saturating_add(1);
            }
        }
        Ok(())
    }

    /// The reservations to store.
    pub fn into_reserved(self) -> Reserved {
        let (mut counters, mut places) = (Vec::new(), Vec::new());
        for (grant, ring) in self.0 {
            if ring.taken == ring.taken_before {
                continue;
            }
            counters.push(vec![Value::Integer(ring.taken), Value::from(grant)]);
            let first = ring.taken_before.max(ring.taken.saturating_sub(ring.limit));
            for number in first..ring.taken {
                let place = number.rem_euclid(ring.limit);
                let Some(time) = ring.times.get(&place) else { continue };
                places.push(vec![Value::from(grant), Value::Integer(place), Value::from(*time)]);
            }
        }
        Reserved { counters, places }
    }
}

impl Reserved {
    /// The changes that store it.
    pub fn changes(&self) -> [Change<'_>; 2] {
        let into = "rate_places (grant_id, place, time)";
        let otherwise = "ON CONFLICT (grant_id, place) DO UPDATE SET time = excluded.time";
        [
            Change::Each("UPDATE rates SET taken = $1 WHERE grant_id = $2", &self.counters),
            Change::Insert(Rows { into, rows: &self.places, otherwise }),
        ]
    }
}

/// The number of slots deleted by one transaction: few enough that calls hardly wait for it.
const BATCH: u32 = 2_000;
/// The number of such transactions per sweep.
pub const BATCHES: usize = 20;

/// Marks the rings of grants that have ended, which [`ForgetRates`] then deletes: a ring may have millions of places.
pub async fn forget<T: Transaction>(transaction: &mut T, grants: &[Vec<Value<'_>>]) -> Result<(), Failure> {
    transaction.execute_many("UPDATE rates SET taken = -1 WHERE grant_id = $1", grants).await?;
    Ok(())
}

/// Deletes slots of a ring that are no longer needed; returns whether there may be more.
pub struct ForgetRates;

impl Operation for ForgetRates {
    type Output = bool;

    const CHANGES_AUTHORITY: bool = false;
    const CAN_WAIT: bool = true;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<bool, Failure> {
        let skip = T::FOR_UPDATE_SKIPPING;
        let sql = format!("SELECT grant_id FROM rates WHERE taken < 0 ORDER BY grant_id LIMIT 1{skip}");
        let Some(row) = transaction.query_optional(&sql, &[]).await? else { return Ok(false) };
        let grant = row.text(0)?;
        let sql = "DELETE FROM rate_places WHERE grant_id = $1 AND place IN \
             (SELECT place FROM rate_places WHERE grant_id = $1 ORDER BY place LIMIT $2)";
        let deleted = transaction.execute(sql, values![grant, BATCH]).await?;
        if deleted < u64::from(BATCH) {
            transaction.execute("DELETE FROM rates WHERE grant_id = $1", values![grant]).await?;
        }
        Ok(true)
    }
}

impl Ring {
    fn next(&self) -> i64 {
        self.taken.rem_euclid(self.limit.max(1))
    }

    /// How long the next call has to wait; `None` if there is capacity now.
    fn wait(&self, now: Timestamp) -> Option<Wait> {
        if self.limit == 0 {
            return Some(Wait::Forever);
        }
        let free_at = self.times.get(&self.next())?.plus(HOUR);
        // Rounded up to whole seconds, so that a caller that waits that long finds capacity.
        let seconds = free_at.as_millis().saturating_sub(now.as_millis()).saturating_add(999).div_euclid(1000);
        (free_at > now).then_some(Wait::Seconds(seconds))
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Wait {
    Seconds(i64),
    Forever,
}

fn refusal(wait: Wait, grant: GrantId, limit: i64) -> Refusal {
    let reason = match wait {
        Wait::Seconds(seconds) => {
            format!("grant {grant} allows {limit} calls in an hour; try again in {seconds} seconds")
        }
        Wait::Forever => format!("grant {grant} allows no calls"),
    };
    let refusal =
        Refusal::new(Code::GrantRateLimited, reason).with("grant_id", grant).with("max_invocations_per_hour", limit);
    match wait {
        Wait::Seconds(seconds) => refusal.with("retry_after_seconds", seconds),
        Wait::Forever => refusal,
    }
}

async fn counters<T: Transaction>(
    transaction: &mut T,
    grants: impl Iterator<Item = GrantId>,
) -> Result<BTreeMap<GrantId, i64>, Failure> {
    let (places, ids) = padded(grants.map(Value::from).collect());
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let lock = T::FOR_UPDATE;
    let sql = format!("SELECT grant_id, taken FROM rates WHERE grant_id IN ({places}) ORDER BY grant_id{lock}");
    let rows = transaction.query(&sql, &ids).await?;
    rows.iter().map(|row| Ok((row.parsed(0, GrantId::parse)?, row.integer(1)?))).collect()
}

/// The times at the places that the next `uses` calls would take.
async fn reachable<T: Transaction>(
    transaction: &mut T,
    grant: GrantId,
    limit: i64,
    taken: i64,
    uses: i64,
) -> Result<BTreeMap<i64, Timestamp>, Failure> {
    if limit == 0 {
        return Ok(BTreeMap::new());
    }
    let first = taken.rem_euclid(limit);
    let last = first + uses.min(limit) - 1;
    // Past the end of the ring it continues at its beginning.
    let ranges = if last < limit { [(first, last), (0, -1)] } else { [(first, limit - 1), (0, last - limit)] };
    let mut times = BTreeMap::new();
    for (from, to) in ranges.into_iter().filter(|(from, to)| from <= to) {
        let sql = "SELECT place, time FROM rate_places WHERE grant_id = $1 AND place >= $2 AND place <= $3";
        for row in transaction.query(sql, values![grant, Value::Integer(from), Value::Integer(to)]).await? {
            times.insert(row.integer(0)?, row.time(1)?);
        }
    }
    Ok(times)
}
