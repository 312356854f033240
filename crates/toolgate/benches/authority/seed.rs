//! Filling a ledger with many grants at once, by the statements of the engine itself.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rusqlite::params;
use tokio_postgres::{Client, NoTls};
use toolgate_gate::ports::entropy::random;
use toolgate_gate::ports::ledger::{
    AuditContext, CreateCredential, CreateTenant, CreateVault, Ledger, Mandate, NewKey,
};
use toolgate_model::credential::{AuthType, Credential, ServiceName, Vault};
use toolgate_model::id::{CredentialId, GrantId, KeyId, VaultId};
use toolgate_model::permission::PermissionSet;
use toolgate_model::principal::{Principal, PrincipalId, PrincipalKind, Tenant, TenantId};
use toolgate_model::scope::{Scope, ScopeSet};
use toolgate_model::text::Line;
use toolgate_model::time::Timestamp;

/// 2026-02-08T10:00:00Z; nothing in a benchmark expires.
pub fn now() -> Timestamp {
    Timestamp::from_millis(1_770_544_800_000).unwrap()
}

pub fn tenant() -> TenantId {
    TenantId::default_tenant()
}

pub fn audit() -> Mandate {
    Mandate::own(AuditContext { tenant: tenant(), actor: PrincipalId::administrator(), time: now() })
}

pub fn new_id() -> GrantId {
    GrantId::new(now(), random().unwrap())
}

pub fn scopes() -> ScopeSet {
    ["charges.read", "charges.create"].into_iter().map(|scope| Scope::parse(scope).unwrap()).collect()
}

/// A tenant with one vault and one credential.
pub async fn credential(ledger: &dyn Ledger) -> CredentialId {
    let administrator = Principal::new(
        tenant(),
        PrincipalId::administrator(),
        PrincipalKind::User,
        PermissionSet::of_the_platform_administrator(),
        now(),
    );
    let key = NewKey {
        id: KeyId::new(now(), random().unwrap()),
        principal: administrator.id.clone(),
        digest: random().unwrap(),
        hint: "tgk_none".to_owned(),
        identity: None,
        label: None,
        expires_at: None,
    };
    let made = Tenant::new(tenant(), None, now());
    ledger.create_tenant(CreateTenant { audit: audit(), tenant: made, administrator, key }).await.unwrap();
    let vault = vault();
    ledger.create_vault(CreateVault { audit: audit(), vault: vault.clone() }).await.unwrap();
    let credential = Credential {
        id: CredentialId::new(now(), random().unwrap()),
        tenant: tenant(),
        vault: vault.id,
        service: ServiceName::parse("stripe").unwrap(),
        label: Line::parse("stripe").unwrap(),
        auth_type: AuthType::ApiKey,
        scopes_available: scopes(),
        metadata: serde_json::Map::new(),
        version: 0,
        material_fields: Vec::new(),
        created_at: now(),
        rotated_at: now(),
        expires_at: None,
        revoked_at: None,
    };
    let id = credential.id;
    ledger.create_credential(CreateCredential { audit: audit(), credential, sealed: None }).await.unwrap();
    id
}

/// Each made a millisecond after the last, as in life: ids sort by time, and that is what indexes like.
pub fn vault() -> Vault {
    static MADE: AtomicU64 = AtomicU64::new(0);
    let made_at = now().plus(Duration::from_millis(MADE.fetch_add(1, Ordering::Relaxed)));
    Vault {
        id: VaultId::new(made_at, random().unwrap()),
        tenant: tenant(),
        owner: PrincipalId::administrator(),
        name: Line::parse("bench").unwrap(),
        created_at: now(),
    }
}

/// A grant to be stored: who holds it, what it comes from, how deep it is.
pub struct Row {
    pub id: GrantId,
    pub agent: String,
    pub source: Option<GrantId>,
    pub level: i64,
}

/// Grants of many agents, each with one delegated from it.
pub fn pairs(count: usize) -> Vec<Row> {
    (0..count / 2)
        .flat_map(|number| {
            let root = new_id();
            let agent = format!("agent-{number}");
            let below = Row { id: new_id(), agent: format!("worker-{number}"), source: Some(root), level: 1 };
            [Row { id: root, agent, source: None, level: 0 }, below]
        })
        .collect()
}

/// A way around the front door.
pub enum Seeder {
    Postgres(Client),
    Sqlite(std::sync::Mutex<rusqlite::Connection>),
}

const COLUMNS: &str = "id, tenant, credential, service, agent, granted_by, source, level, scopes, constraints, context, \
     delegatable, delegation_depth, expires_at, created_at";
const SCOPES: &str = r#"["charges.create","charges.read"]"#;
const CONSTRAINTS: &str = r#"{"max_invocations_per_hour":100}"#;

impl Seeder {
    pub fn sqlite(path: &Path) -> Self {
        let connection = rusqlite::Connection::open(path).unwrap();
        connection.busy_timeout(std::time::Duration::from_secs(60)).unwrap();
        Self::Sqlite(std::sync::Mutex::new(connection))
    }

    pub async fn postgres(url: &str) -> Self {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
        tokio::spawn(connection);
        Self::Postgres(client)
    }

    /// Stores grants; sources must come before what is below them.
    pub async fn insert(&self, credential: CredentialId, rows: &[Row]) {
        match self {
            Self::Sqlite(connection) => insert_sqlite(&mut connection.lock().unwrap(), credential, rows),
            Self::Postgres(client) => insert_postgres(client, credential, rows).await,
        }
    }
}

fn insert_sqlite(connection: &mut rusqlite::Connection, credential: CredentialId, rows: &[Row]) {
    let transaction = connection.transaction().unwrap();
    {
        let sql = format!(
            "INSERT INTO grants ({COLUMNS}) VALUES (?1, 'default', ?2, 'stripe', ?3, 'admin', ?4, ?5, \
             '{SCOPES}', '{CONSTRAINTS}', '{{}}', 1, NULL, NULL, ?6)"
        );
        let mut statement = transaction.prepare(&sql).unwrap();
        for row in rows {
            let source = row.source.map(|source| source.to_string());
            let values =
                params![row.id.to_string(), credential.to_string(), row.agent, source, row.level, now().as_millis()];
            statement.execute(values).unwrap();
        }
    }
    transaction.commit().unwrap();
}

async fn insert_postgres(client: &Client, credential: CredentialId, rows: &[Row]) {
    use futures_util::SinkExt;
    let copy = client.copy_in(&format!("COPY grants ({COLUMNS}) FROM STDIN")).await.unwrap();
    let mut sink = std::pin::pin!(copy);
    for chunk in rows.chunks(10_000) {
        let mut text = String::new();
        for row in chunk {
            let source = row.source.map_or_else(|| r"\N".to_owned(), |source| source.to_string());
            text.push_str(&format!(
                "{}\tdefault\t{credential}\tstripe\t{}\tadmin\t{source}\t{}\t{SCOPES}\t{CONSTRAINTS}\t{{}}\t1\t\\N\t\\N\t{}\n",
                row.id,
                row.agent,
                row.level,
                now().as_millis()
            ));
        }
        sink.send(bytes::Bytes::from(text)).await.unwrap();
    }
    sink.as_mut().finish().await.unwrap();
    client.batch_execute("ANALYZE grants").await.unwrap();
}
