//! Token buckets: how often one principal may call one tool (RFC 0064 §D). The transaction that admits the call takes
//! the token, so that concurrent calls, on any replica, cannot take the same one.

use std::collections::{BTreeMap, BTreeSet};

use toolgate_gate::ports::ledger::Admit;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::rate_limit::BucketState;
use toolgate_model::text::SharedText;

use crate::sql::{Failure, Value};
use crate::transaction::{INSERT, Transaction, insert_statement};

/// The principal and the tool of a bucket.
type Name = (TenantId, PrincipalId, SharedText);

const INTO: &str = "tool_buckets (tenant, principal, tool, state)";

/// The buckets of some calls, held by the transaction.
#[derive(Default)]
pub struct Buckets {
    states: BTreeMap<Name, BucketState>,
    changed: BTreeSet<Name>,
}

impl Buckets {
    /// Locks the buckets of these calls.
    pub async fn hold<T: Transaction>(
        transaction: &mut T,
        calls: impl Iterator<Item = &Admit>,
    ) -> Result<Self, Failure> {
        let names: BTreeSet<Name> = calls.filter(|admit| admit.bucket.is_some()).map(name).collect();
        if names.is_empty() {
            return Ok(Self::default());
        }
        if !T::FOR_UPDATE.is_empty() {
            // If another transaction creates the same row, this waits for it and then sees its changes. A new bucket
            // counts as full. Created in the global order.
            let rows = names.iter().flat_map(|name| values_of(name).into_iter().chain([Value::Integer(0)]));
            let insert = insert_statement(INSERT, INTO, names.len(), 4);
            let make = format!("{insert} ON CONFLICT (tenant, principal, tool) DO NOTHING");
            transaction.execute(&make, &rows.collect::<Vec<_>>()).await?;
        }
        let places: Vec<_> =
            (0..names.len()).map(|row| format!("(${}, ${}, ${})", row * 3 + 1, row * 3 + 2, row * 3 + 3)).collect();
        let sql = format!(
            "SELECT tool, tenant, principal, state FROM tool_buckets WHERE (tenant, principal, tool) IN (VALUES {}) \
             ORDER BY tenant, principal, tool{}",
            places.join(", "),
            T::FOR_UPDATE
        );
        let parameters: Vec<Value<'_>> = names.iter().flat_map(values_of).collect();
        let mut states = BTreeMap::new();
        for row in transaction.query(&sql, &parameters).await? {
            let name = (row.parsed(1, TenantId::parse)?, row.parsed(2, PrincipalId::parse)?, row.text(0)?.into());
            states.insert(name, BucketState::from_i64(row.integer(3)?));
        }
        Ok(Self { states, changed: BTreeSet::new() })
    }

    /// The state of this call's bucket with one token less, or why there is none.
    pub fn check(&self, admit: &Admit) -> Result<Option<BucketState>, Refusal> {
        let Some(limit) = admit.bucket else { return Ok(None) };
        let name = name(admit);
        let taken = limit.take(self.states.get(&name).copied(), admit.audit.time);
        taken.map(Some).map_err(|wait| {
            let (_, principal, tool) = name;
            let reason = format!(
                "`{principal}` may call {tool} {} times in {} seconds; try again in {} seconds",
                limit.requests(),
                limit.per().as_secs(),
                wait.seconds()
            );
            Refusal::new(Code::ToolRateLimited, reason)
                .with("scope", "tool")
                .with("toolName", tool)
                .with("retry_after_seconds", wait.seconds())
        })
    }

    /// Takes the token that [`Buckets::check`] found.
    pub fn put(&mut self, admit: &Admit, state: Option<BucketState>) {
        if let Some(state) = state {
            let name = name(admit);
            self.states.insert(name.clone(), state);
            self.changed.insert(name);
        }
    }

    /// Stores the taken tokens.
    pub async fn keep<T: Transaction>(self, transaction: &mut T) -> Result<(), Failure> {
        let Self { states, changed } = self;
        let changed = states.iter().filter(|(name, _)| changed.contains(*name));
        let rows: Vec<Vec<Value<'_>>> = changed
            .map(|(name, state)| values_of(name).into_iter().chain([Value::Integer(state.as_i64())]).collect())
            .collect();
        let sql = "INSERT INTO tool_buckets (tenant, principal, tool, state) VALUES ($1, $2, $3, $4) \
             ON CONFLICT (tenant, principal, tool) DO UPDATE SET state = excluded.state";
        transaction.execute_many(sql, &rows).await?;
        Ok(())
    }
}

fn values_of(name: &Name) -> [Value<'_>; 3] {
    [Value::from(&name.0), Value::from(&name.1), Value::from(name.2.as_str())]
}

fn name(admit: &Admit) -> Name {
    let invocation = &admit.invocation;
    (invocation.tenant.clone(), invocation.agent.clone(), invocation.tool_name())
}
