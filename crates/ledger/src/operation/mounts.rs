//! Mounted MCP servers: adding, removing, and recording what a server offers. Decisions are in `mount_decisions.rs`.

use async_trait::async_trait;
use toolgate_gate::ports::ledger::{
    AddMount, DecideMount, Mandate, MountSummary, Mounts, OfferRecorded, RecordCheck, RecordOffer, RemoveMount,
};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::canonical::to_canonical_string;
use toolgate_model::credential::ServiceName;
use toolgate_model::event::{
    EventPayload, MountAdded, MountRemoved, MountServerQuarantined, MountToolQuarantined, MountToolRestored,
    ServiceRemoved,
};
use toolgate_model::mount::{MOUNT_LIMIT, Mount, MountAddress, MountTool, ToolChange, ToolState, compare, version};
use toolgate_model::principal::TenantId;
use toolgate_model::time::Timestamp;

use super::administration::{Administration, Entitled};
use super::mount_rows::{
    MOUNT_COLUMNS, delete_tools, insert_tools, mount, not_found, read_mount, register, tools, update_mount,
};
use super::record::{Entry, record, record_all};
use super::services::next_revision;
use super::{Operation, agent_tasks};
use crate::ledger::{Engine, SqlLedger};
use crate::sql::{Failure, Value};
use crate::transaction::{Transaction, values};

#[async_trait]
impl<E: Engine> Mounts for SqlLedger<E> {
    async fn add_mount(&self, command: AddMount) -> Result<(), Refusal> {
        self.engine.write(command).await
    }

    async fn remove_mount(&self, command: RemoveMount) -> Result<(), Refusal> {
        self.engine.write(command).await
    }

    async fn record_offer(&self, command: RecordOffer) -> Result<OfferRecorded, Refusal> {
        self.engine.write(command).await
    }

    async fn record_check(&self, command: RecordCheck) -> Result<(), Refusal> {
        self.engine.write(command).await
    }

    async fn decide_mount(&self, command: DecideMount) -> Result<(), Refusal> {
        self.engine.write(command).await
    }

    async fn mounts(&self, tenant: &TenantId) -> Result<Vec<MountSummary>, Refusal> {
        self.engine.read(ListMounts { tenant: tenant.clone() }).await
    }

    async fn mount(&self, tenant: &TenantId, name: &ServiceName) -> Result<Option<(Mount, Vec<MountTool>)>, Refusal> {
        self.engine.read(ReadMount { tenant: tenant.clone(), name: name.clone() }).await
    }

    async fn declaring_tenants(&self) -> Result<Vec<TenantId>, Refusal> {
        self.engine.read(ListDeclaring).await
    }

    async fn mounts_to_check(&self, then: Timestamp, limit: usize) -> Result<Vec<(TenantId, ServiceName)>, Refusal> {
        self.engine.read(ListDue { then, limit }).await
    }
}

impl Administration for AddMount {
    type Output = ();

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<(), Failure> {
        let mount = &self.mount;
        let place = next_revision(transaction, &by.tenant).await?;
        let sql = "SELECT tenant, count(*) FROM mounts WHERE tenant = $1 GROUP BY tenant";
        let row = transaction.query_optional(sql, values![&by.tenant]).await?;
        let count: u64 = row.map_or(Ok(0), |row| row.count(1))?;
        if usize::try_from(count).unwrap_or(usize::MAX) >= MOUNT_LIMIT {
            let reason = format!("there are {count} mounts, and {MOUNT_LIMIT} is the limit; remove one");
            return Err(Refusal::new(Code::TooManyMounts, reason).into());
        }
        let sql = "SELECT service FROM services WHERE tenant = $1 AND service = $2 LIMIT 1";
        if transaction.query_optional(sql, values![&by.tenant, &mount.name]).await?.is_some() {
            let reason = format!("there is a service `{}` already; choose another name for the mount", mount.name);
            return Err(Refusal::new(Code::AlreadyExists, reason).into());
        }
        let url = match &mount.address {
            MountAddress::Http { url } | MountAddress::Agent { url } => Some(url.to_string()),
            MountAddress::Stdio => None,
        };
        let sql = format!(
            "INSERT INTO mounts ({MOUNT_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)"
        );
        let pinned = mount.pinned.as_ref().map(|server| to_canonical_string(&server.to_json()));
        let parameters = values![
            &mount.name,
            &by.tenant,
            url.as_deref(),
            mount.trusted,
            mount.hidden_characters.as_str(),
            mount.credential,
            mount.era.as_str(),
            pinned,
            to_canonical_string(&mount.seen.to_json()),
            mount.checked_at,
            mount.failure.as_deref(),
            by.time,
            by.time,
            mount.declared,
            mount.address.protocol(),
        ];
        transaction.execute(&sql, parameters).await?;
        insert_tools(transaction, mount, self.tools.iter()).await?;
        let payload = EventPayload::MountAdded(MountAdded {
            address: url.unwrap_or_else(|| "stdio".to_owned()),
            mount: mount.name.clone(),
            tools: u64::try_from(self.tools.len()).unwrap_or(u64::MAX),
            trusted: mount.trusted,
        });
        record(transaction, by, Entry::new(payload)).await?;
        register(transaction, by, mount, place).await
    }
}

impl Administration for RemoveMount {
    type Output = ();

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<(), Failure> {
        next_revision(transaction, &by.tenant).await?;
        let known = mount(transaction, &by.tenant, &self.name).await?.ok_or_else(|| not_found(&self.name))?;
        delete_tools(transaction, &known, None).await?;
        let sql = "DELETE FROM mounts WHERE tenant = $1 AND name = $2";
        transaction.execute(sql, values![&by.tenant, &self.name]).await?;
        let sql = "DELETE FROM services WHERE tenant = $1 AND service = $2";
        transaction.execute(sql, values![&by.tenant, &self.name]).await?;
        agent_tasks::forget_peer(transaction, &by.tenant, &self.name).await?;
        let payloads = [
            EventPayload::MountRemoved(MountRemoved { mount: self.name.clone() }),
            EventPayload::ServiceRemoved(ServiceRemoved { service: self.name.clone(), version: version() }),
        ];
        record_all(transaction, by, payloads.map(Entry::new)).await
    }
}

impl Administration for RecordOffer {
    type Output = OfferRecorded;

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<OfferRecorded, Failure> {
        let place = next_revision(transaction, &by.tenant).await?;
        let known = mount(transaction, &by.tenant, &self.name).await?.ok_or_else(|| not_found(&self.name))?;
        let was_quarantined = known.is_server_quarantined();
        let now = Mount {
            era: self.offer.era,
            seen: self.offer.server.clone(),
            checked_at: by.time,
            failure: None,
            updated_at: by.time,
            ..known.clone()
        };
        update_mount(transaction, &now).await?;
        let changes = compare(&tools(transaction, &by.tenant, &self.name).await?, &self.offer.tools);
        let changed: Vec<&str> = changes.iter().map(|change| change.upstream.as_str()).collect();
        delete_tools(transaction, &now, Some(&changed)).await?;
        insert_tools(transaction, &now, changes.iter().filter_map(|change| change.after.as_ref())).await?;
        let mut recorded = OfferRecorded::default();
        let mut entries: Vec<Entry> = changes.iter().filter_map(|change| entry(&now, change)).collect();
        for entry in &entries {
            match entry.payload {
                EventPayload::MountToolRestored(_) => recorded.restored += 1,
                _ => recorded.quarantined += 1,
            }
        }
        let is_news = now.is_server_quarantined() && (!was_quarantined || known.seen.hash() != now.seen.hash());
        if let Some(pinned) = now.pinned.as_ref().filter(|_| is_news) {
            recorded.server = true;
            entries.push(Entry::new(EventPayload::MountServerQuarantined(MountServerQuarantined {
                hash: now.seen.hash(),
                mount: now.name.clone(),
                pinned_hash: pinned.hash(),
                replaced: now.is_replaced(),
            })));
        }
        record_all(transaction, by, entries).await?;
        register(transaction, by, &now, place).await?;
        Ok(recorded)
    }
}

/// What is recorded about a tool whose record changed. That a definition nobody had accepted is gone is not.
fn entry(mount: &Mount, change: &ToolChange) -> Option<Entry> {
    let tool = change.after.as_ref()?;
    let hash = tool.seen.as_ref().map(|seen| seen.hash.clone());
    let payload = match tool.state {
        ToolState::Rejected => return None,
        ToolState::Accepted => EventPayload::MountToolRestored(MountToolRestored {
            hash: hash.unwrap_or_default(),
            mount: mount.name.clone(),
            tool: tool.name.clone(),
            upstream: tool.upstream.clone(),
        }),
        ToolState::Quarantined(_) => EventPayload::MountToolQuarantined(MountToolQuarantined {
            change: tool.state.as_str().to_owned(),
            hash,
            mount: mount.name.clone(),
            pinned_hash: tool.pinned.as_ref().map(|pinned| pinned.hash.clone()),
            tool: tool.name.clone(),
            upstream: tool.upstream.clone(),
        }),
    };
    Some(Entry { tool: Some(mount.name.with_tool(tool.name.as_str()).into()), ..Entry::new(payload) })
}

impl Operation for RecordCheck {
    type Output = ();

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<(), Failure> {
        let sql = "UPDATE mounts SET checked_at = $1, failure = $2 WHERE tenant = $3 AND name = $4";
        let parameters = values![self.time, self.failure.as_deref(), &self.tenant, &self.name];
        transaction.execute(sql, parameters).await?;
        Ok(())
    }
}

struct ReadMount {
    tenant: TenantId,
    name: ServiceName,
}

impl Operation for ReadMount {
    type Output = Option<(Mount, Vec<MountTool>)>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Self::Output, Failure> {
        let Some(mount) = mount(transaction, &self.tenant, &self.name).await? else { return Ok(None) };
        Ok(Some((mount, tools(transaction, &self.tenant, &self.name).await?)))
    }
}

struct ListMounts {
    tenant: TenantId,
}

impl Operation for ListMounts {
    type Output = Vec<MountSummary>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Vec<MountSummary>, Failure> {
        let sql = format!("SELECT {MOUNT_COLUMNS} FROM mounts WHERE tenant = $1 ORDER BY name");
        let rows = transaction.query(&sql, values![&self.tenant]).await?;
        let sql = "SELECT mount, state, count(*) FROM mount_tools WHERE tenant = $1 GROUP BY mount, state";
        let counts = transaction.query(sql, values![&self.tenant]).await?;
        let mut summaries = Vec::with_capacity(rows.len());
        for row in &rows {
            let mount = read_mount(row)?;
            let mut summary = MountSummary { mount, accepted: 0, quarantined: 0, rejected: 0 };
            for count in
                counts.iter().filter(|count| count.text(0).is_ok_and(|name| name == summary.mount.name.as_str()))
            {
                let number: u64 = count.count(2)?;
                match count.parsed(1, |text| ToolState::parse(text).ok_or(()))? {
                    ToolState::Accepted => summary.accepted += number,
                    ToolState::Quarantined(_) => summary.quarantined += number,
                    ToolState::Rejected => summary.rejected += number,
                }
            }
            summaries.push(summary);
        }
        Ok(summaries)
    }
}

struct ListDeclaring;

impl Operation for ListDeclaring {
    type Output = Vec<TenantId>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Self::Output, Failure> {
        let sql = "SELECT DISTINCT tenant FROM mounts WHERE declared <> 0 ORDER BY tenant";
        let rows = transaction.query(sql, values![]).await?;
        Ok(rows.iter().map(|row| row.parsed(0, TenantId::parse)).collect::<Result<_, _>>()?)
    }
}

struct ListDue {
    then: Timestamp,
    limit: usize,
}

impl Operation for ListDue {
    type Output = Vec<(TenantId, ServiceName)>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Self::Output, Failure> {
        let limit = Value::Integer(i64::try_from(self.limit).unwrap_or(i64::MAX));
        let sql = "SELECT name, tenant FROM mounts WHERE checked_at < $1 ORDER BY checked_at LIMIT $2";
        let rows = transaction.query(sql, values![self.then, limit]).await?;
        let read = |row: &crate::sql::Row| Ok((row.parsed(1, TenantId::parse)?, row.parsed(0, ServiceName::parse)?));
        rows.iter().map(read).collect()
    }
}
