//! What people decide about mounts. A decision names the hash that was shown: it is compared with what is there in the
//! transaction that makes it usable.

use toolgate_gate::ports::ledger::{AuditContext, DecideMount, Decided, Mandate};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::credential::ServiceName;
use toolgate_model::event::{EventPayload, MountServerAccepted, MountToolAccepted, MountToolRejected};
use toolgate_model::mount::{Mount, MountTool, ToolState};
use toolgate_model::scope::{SCOPE_LIMIT, Scope, ScopeSet};
use toolgate_model::visible::visible;

use super::administration::{Administration, Entitled};
use super::credentials;
use super::mount_rows::{delete_tools, insert_tools, mount, not_found, register, tools, update_mount};
use super::record::{Entry, record_all};
use super::services::next_revision;
use crate::sql::{Failure, json_text};
use crate::transaction::{Transaction, values};

impl Administration for DecideMount {
    type Output = ();

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<(), Failure> {
        // In the order in which everybody takes hold of them: credentials before registries.
        let credentials = held_credentials(transaction, by, &self.name).await?;
        let place = next_revision(transaction, &by.tenant).await?;
        let mut known = mount(transaction, &by.tenant, &self.name).await?.ok_or_else(|| not_found(&self.name))?;
        let mut entries = Vec::new();
        if let Some(decided) = &self.server {
            entries.push(accept_server(&mut known, decided)?);
        }
        if self.accept && !self.tools.is_empty() && known.pinned.is_none() {
            let reason =
                format!("the server of `{}` is not accepted yet; accept it together with its tools", self.name);
            return Err(Refusal::new(Code::MountChanged, reason).with("name", "server").into());
        }
        known.updated_at = by.time;
        update_mount(transaction, &known).await?;
        let offered = tools(transaction, &by.tenant, &self.name).await?;
        let mut decided_tools = Vec::new();
        for (upstream, decided) in &self.tools {
            let tool = offered.iter().find(|tool| tool.upstream == *upstream);
            let tool = tool.ok_or_else(|| not_offered(&self.name, upstream))?;
            require_shown(upstream, tool.hash_to_confirm(), &decided.hash)?;
            let (after, payload) = if self.accept { accept(&known, tool, decided)? } else { reject(&known, tool)? };
            let tool_name = self.name.with_tool(tool.name.as_str());
            entries.push(Entry { tool: Some(tool_name.into()), ..Entry::new(payload) });
            decided_tools.extend(after);
        }
        let changed: Vec<&str> = self.tools.keys().map(String::as_str).collect();
        delete_tools(transaction, &known, Some(&changed)).await?;
        insert_tools(transaction, &known, decided_tools.iter()).await?;
        record_all(transaction, by, entries).await?;
        register(transaction, by, &known, place).await?;
        widen(transaction, credentials, &known, &decided_tools).await
    }
}

fn accept_server(mount: &mut Mount, decided: &Decided) -> Result<Entry, Refusal> {
    let hash = mount.seen.hash();
    require_shown("server", Some(&hash), &decided.hash)?;
    let previous = mount.pinned.replace(mount.seen.clone());
    Ok(Entry::new(EventPayload::MountServerAccepted(MountServerAccepted {
        hash,
        mount: mount.name.clone(),
        overridden: decided.overridden.clone(),
        previous_hash: previous.map(|server| server.hash()),
    })))
}

fn accept(mount: &Mount, tool: &MountTool, decided: &Decided) -> Result<(Option<MountTool>, EventPayload), Refusal> {
    let after = tool.accepted().map_err(|reason| Refusal::new(Code::MountBlocked, reason))?;
    let payload = EventPayload::MountToolAccepted(MountToolAccepted {
        change: tool.state.as_str().to_owned(),
        hash: decided.hash.clone(),
        mount: mount.name.clone(),
        overridden: decided.overridden.clone(),
        previous_hash: tool.pinned.as_ref().map(|pinned| pinned.hash.clone()),
        tool: tool.name.clone(),
        upstream: tool.upstream.clone(),
    });
    Ok((after, payload))
}

fn reject(mount: &Mount, tool: &MountTool) -> Result<(Option<MountTool>, EventPayload), Refusal> {
    let Some(seen) = &tool.seen else {
        let reason = format!("`{}` is not offered any more; accept that, or remove the mount", visible(&tool.upstream));
        return Err(Refusal::new(Code::MountChanged, reason).with("name", &tool.upstream));
    };
    let payload = EventPayload::MountToolRejected(MountToolRejected {
        hash: seen.hash.clone(),
        mount: mount.name.clone(),
        tool: tool.name.clone(),
        upstream: tool.upstream.clone(),
    });
    Ok((Some(tool.rejected()), payload))
}

fn require_shown(name: &str, there: Option<&str>, shown: &str) -> Result<(), Refusal> {
    if there == Some(shown) {
        return Ok(());
    }
    let reason = format!("`{}` is not what you were shown any more; review the mount again", visible(name));
    Err(Refusal::new(Code::MountChanged, reason).with("name", name))
}

fn not_offered(mount: &ServiceName, upstream: &str) -> Refusal {
    let shown: String = visible(upstream).chars().take(64).collect();
    Refusal::new(Code::MountNotFound, format!("mount `{mount}` has no tool `{shown}`"))
}

/// The credentials of a mount's service, held until the transaction ends.
async fn held_credentials<T: Transaction>(
    transaction: &mut T,
    by: &AuditContext,
    name: &ServiceName,
) -> Result<Vec<toolgate_model::credential::Credential>, Failure> {
    let sql = format!(
        "SELECT {} FROM credentials WHERE tenant = $1 AND service = $2 AND revoked_at IS NULL ORDER BY id{}",
        credentials::COLUMNS,
        T::FOR_UPDATE
    );
    let rows = transaction.query(&sql, values![&by.tenant, name]).await?;
    Ok(rows.iter().map(credentials::read).collect::<Result<_, _>>()?)
}

/// Gives the credentials of the service the scopes of what was accepted, so that it can be granted. Grants name their scopes,
/// and none of them becomes wider by this.
async fn widen<T: Transaction>(
    transaction: &mut T,
    credentials: Vec<toolgate_model::credential::Credential>,
    mount: &Mount,
    tools: &[MountTool],
) -> Result<(), Failure> {
    let accepted = tools.iter().filter(|tool| tool.state == ToolState::Accepted);
    let scopes = accepted.filter_map(|tool| Scope::parse(tool.name.as_str()).ok());
    let forwarded = mount.pinned.iter().flat_map(|server| server.scopes());
    let scopes: Vec<Scope> = scopes.chain(forwarded).collect();
    for credential in credentials {
        let wider: ScopeSet = credential.scopes_available.iter().chain(&scopes).cloned().collect();
        if wider == credential.scopes_available {
            continue;
        }
        if wider.iter().count() > SCOPE_LIMIT {
            let reason = format!("credential {} would have more than {SCOPE_LIMIT} scopes", credential.id);
            return Err(Refusal::new(Code::MountBlocked, reason).into());
        }
        let sql = "UPDATE credentials SET scopes_available = $1 WHERE id = $2";
        transaction.execute(sql, values![json_text(&wider)?, credential.id]).await?;
    }
    Ok(())
}
