//! The rows of mounts and of their tools, and the registered service that follows from them.

use toolgate_gate::ports::ledger::AuditContext;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::canonical::to_canonical_string;
use toolgate_model::connection::BaseUrl;
use toolgate_model::credential::ServiceName;
use toolgate_model::id::CredentialId;
use toolgate_model::mount::{
    McpEra, Mount, MountAddress, MountTool, PinnedDefinition, SeenDefinition, ServerIdentity, ToolState,
    service_definition, version,
};
use toolgate_model::principal::TenantId;
use toolgate_model::service::{HiddenCharacters, ToolName};

use super::services;
use crate::sql::{Failure, Row, SqlError, Value};
use crate::transaction::{Transaction, values};

/// The largest registered definition of a mount, in bytes of canonical JSON.
const REGISTERED_LIMIT: usize = 4 * 1024 * 1024;

/// The columns of a mount, in the order in which [`read_mount`] takes them.
pub const MOUNT_COLUMNS: &str = "name, tenant, url, trusted, hidden_characters, credential, era, pinned, seen, checked_at, \
     failure, created_at, updated_at, declared, protocol";
/// The columns of a tool, in the order in which [`read_tool`] takes them.
const TOOL_COLUMNS: &str = "upstream, tool, state, pinned, pinned_hash, seen, seen_hash";

/// Reads a row of [`MOUNT_COLUMNS`].
pub fn read_mount(row: &Row) -> Result<Mount, SqlError> {
    let corrupt = |column: &str| SqlError::Corrupt(format!("{column} of mount {}", row.text(0).unwrap_or_default()));
    let identity = |column: usize, name: &str| {
        let text = row.optional_text(column)?;
        let read = |text| serde_json::from_str(text).ok().and_then(|value| ServerIdentity::from_json(&value));
        text.map(|text| read(text).ok_or_else(|| corrupt(name))).transpose()
    };
    let rule = row.text(4)?;
    let rule = HiddenCharacters::WORDS.iter().find(|(word, _)| *word == rule);
    Ok(Mount {
        name: row.parsed(0, ServiceName::parse)?,
        tenant: row.parsed(1, TenantId::parse)?,
        address: match (row.optional_parsed(2, BaseUrl::parse)?, row.text(14)?) {
            (Some(url), "mcp") => MountAddress::Http { url },
            (Some(url), "a2a") => MountAddress::Agent { url },
            (None, "mcp") => MountAddress::Stdio,
            _ => return Err(corrupt("protocol")),
        },
        trusted: row.integer(3)? != 0,
        hidden_characters: rule.map(|&(_, rule)| rule).ok_or_else(|| corrupt("hidden_characters"))?,
        credential: row.optional_parsed(5, CredentialId::parse)?,
        era: row.parsed(6, |text| McpEra::parse(text).ok_or(()))?,
        pinned: identity(7, "pinned")?,
        seen: identity(8, "seen")?.ok_or_else(|| corrupt("seen"))?,
        checked_at: row.time(9)?,
        failure: row.optional_text(10)?.map(str::to_owned),
        created_at: row.time(11)?,
        updated_at: row.time(12)?,
        declared: row.integer(13)? != 0,
    })
}

fn read_tool(row: &Row) -> Result<MountTool, SqlError> {
    let json = |column: usize| row.optional_parsed(column, |text| serde_json::from_str::<serde_json::Value>(text));
    let hash = |column: usize| Ok::<_, SqlError>(row.optional_text(column)?.map(str::to_owned));
    let pinned = json(3)?.zip(hash(4)?).map(|(definition, hash)| PinnedDefinition { definition, hash });
    let definition = json(5)?;
    Ok(MountTool {
        upstream: row.text(0)?.to_owned(),
        name: row.parsed(1, ToolName::parse)?,
        state: row.parsed(2, |text| ToolState::parse(text).ok_or(()))?,
        pinned,
        seen: hash(6)?.map(|hash| SeenDefinition { definition, hash }),
    })
}

/// The mount of this name.
pub async fn mount<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    name: &ServiceName,
) -> Result<Option<Mount>, Failure> {
    let sql = format!("SELECT {MOUNT_COLUMNS} FROM mounts WHERE tenant = $1 AND name = $2");
    let row = transaction.query_optional(&sql, values![tenant, name]).await?;
    Ok(row.as_ref().map(read_mount).transpose()?)
}

/// The tools of a mount, in the order of their names at the server.
pub async fn tools<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    name: &ServiceName,
) -> Result<Vec<MountTool>, Failure> {
    let sql = format!("SELECT {TOOL_COLUMNS} FROM mount_tools WHERE tenant = $1 AND mount = $2 ORDER BY upstream");
    let rows = transaction.query(&sql, values![tenant, name]).await?;
    Ok(rows.iter().map(read_tool).collect::<Result<_, _>>()?)
}

/// The refusal for a mount that is not there.
pub fn not_found(name: &ServiceName) -> Refusal {
    Refusal::new(Code::MountNotFound, format!("there is no mount `{name}`"))
}

/// Refuses to change a service that is a mount by its definition. The transaction holds the registry.
pub async fn refuse_mounted<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    service: &ServiceName,
) -> Result<(), Failure> {
    let sql = "SELECT name FROM mounts WHERE tenant = $1 AND name = $2";
    match transaction.query_optional(sql, values![tenant, service]).await? {
        None => Ok(()),
        Some(_) => {
            let reason = format!("service `{service}` is a mounted MCP server; use `toolgate mount`");
            Err(Refusal::new(Code::ServiceMounted, reason).into())
        }
    }
}

/// Writes a mount over the row that it has.
pub async fn update_mount<T: Transaction>(transaction: &mut T, mount: &Mount) -> Result<(), Failure> {
    let sql = "UPDATE mounts SET era = $1, pinned = $2, seen = $3, checked_at = $4, failure = $5, updated_at = $6 \
         WHERE tenant = $7 AND name = $8";
    let pinned = mount.pinned.as_ref().map(|server| to_canonical_string(&server.to_json()));
    let parameters = values![
        mount.era.as_str(),
        pinned,
        to_canonical_string(&mount.seen.to_json()),
        mount.checked_at,
        mount.failure.as_deref(),
        mount.updated_at,
        &mount.tenant,
        &mount.name,
    ];
    transaction.execute(sql, parameters).await?;
    Ok(())
}

/// Writes new tools.
pub async fn insert_tools<T: Transaction>(
    transaction: &mut T,
    mount: &Mount,
    tools: impl Iterator<Item = &MountTool> + Send,
) -> Result<(), Failure> {
    let rows: Vec<Vec<Value<'_>>> = tools
        .map(|tool| {
            let pinned = tool.pinned.as_ref();
            let seen = tool.seen.as_ref();
            vec![
                Value::from(&mount.tenant),
                Value::from(&mount.name),
                Value::from(tool.upstream.as_str()),
                Value::from(tool.name.as_str()),
                Value::from(tool.state.as_str()),
                Value::from(pinned.map(|pinned| to_canonical_string(&pinned.definition))),
                Value::from(pinned.map(|pinned| pinned.hash.as_str())),
                Value::from(seen.and_then(|seen| seen.definition.as_ref()).map(to_canonical_string)),
                Value::from(seen.map(|seen| seen.hash.as_str())),
            ]
        })
        .collect();
    let into = "mount_tools (tenant, mount, upstream, tool, state, pinned, pinned_hash, seen, seen_hash)";
    for rows in rows.chunks(64) {
        transaction.insert_many(into, rows).await?;
    }
    Ok(())
}

/// Removes these tools, or all of them.
pub async fn delete_tools<T: Transaction>(
    transaction: &mut T,
    mount: &Mount,
    upstream: Option<&[&str]>,
) -> Result<(), Failure> {
    let Some(upstream) = upstream else {
        let sql = "DELETE FROM mount_tools WHERE tenant = $1 AND mount = $2";
        transaction.execute(sql, values![&mount.tenant, &mount.name]).await?;
        return Ok(());
    };
    let sql = "DELETE FROM mount_tools WHERE tenant = $1 AND mount = $2 AND upstream = $3";
    let each: Vec<Vec<Value<'_>>> = upstream
        .iter()
        .map(|&name| vec![Value::from(&mount.tenant), Value::from(&mount.name), Value::from(name)])
        .collect();
    transaction.execute_many(sql, &each).await?;
    Ok(())
}

/// Registers what can be used of a mount now, unless that is registered already. The transaction holds the registry, at
/// this place.
pub async fn register<T: Transaction>(
    transaction: &mut T,
    by: &AuditContext,
    mount: &Mount,
    place: i64,
) -> Result<(), Failure> {
    let tools = tools(transaction, &mount.tenant, &mount.name).await?;
    let definition = service_definition(mount, &tools)
        .map_err(|error| Refusal::new(Code::MountBlocked, format!("the gate cannot enforce a definition: {error}")))?;
    let text = to_canonical_string(&definition.to_json());
    if text.len() > REGISTERED_LIMIT {
        let reason = format!("the accepted definitions are larger than {REGISTERED_LIMIT} bytes together");
        return Err(Refusal::new(Code::MountBlocked, reason).into());
    }
    let sql = "SELECT service, definition FROM services WHERE tenant = $1 AND service = $2 AND version = $3";
    let row = transaction.query_optional(sql, values![&mount.tenant, &mount.name, &version()]).await?;
    if row.as_ref().map(|row| row.text(1)).transpose()? == Some(text.as_str()) {
        return Ok(());
    }
    services::store(transaction, by, &definition, place, true).await.map(drop)
}
