-- Who exists, which secrets are kept, who may use which of them, and the log that proves it.
-- Times are milliseconds since 1970. JSON is text. Ids sort by the time they were made.

CREATE TABLE settings (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

CREATE TABLE tenants (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT,
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE principals (
    tenant TEXT NOT NULL REFERENCES tenants (id),
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT,
    scopes TEXT NOT NULL,
    permissions TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    removed_at INTEGER,
    PRIMARY KEY (tenant, id)
) STRICT;

CREATE TABLE keys (
    id TEXT NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL,
    principal TEXT NOT NULL,
    digest BLOB NOT NULL UNIQUE,
    hint TEXT NOT NULL,
    label TEXT,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    last_used_at INTEGER,
    FOREIGN KEY (tenant, principal) REFERENCES principals (tenant, id)
) STRICT;
CREATE INDEX keys_of_principal ON keys (tenant, principal, id);

CREATE TABLE vaults (
    id TEXT NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL REFERENCES tenants (id),
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    deleted_at INTEGER
) STRICT;
CREATE INDEX vaults_of_tenant ON vaults (tenant, id);

-- A master key that is retired takes no new material; that is what makes forgetting it safe.
CREATE TABLE master_keys (
    id TEXT NOT NULL PRIMARY KEY,
    retired_at INTEGER
) STRICT;

CREATE TABLE credentials (
    id TEXT NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL REFERENCES tenants (id),
    vault TEXT NOT NULL REFERENCES vaults (id),
    service TEXT NOT NULL,
    label TEXT NOT NULL,
    auth_type TEXT NOT NULL,
    scopes_available TEXT NOT NULL,
    metadata TEXT NOT NULL,
    version INTEGER NOT NULL,
    material_fields TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    rotated_at INTEGER NOT NULL,
    expires_at INTEGER,
    expiry_announced_at INTEGER,
    revoked_at INTEGER
) STRICT;
CREATE INDEX credentials_of_tenant ON credentials (tenant, id);
CREATE INDEX credentials_of_vault ON credentials (vault, id);
CREATE INDEX credentials_to_expire ON credentials (expires_at)
    WHERE expires_at IS NOT NULL AND expiry_announced_at IS NULL AND revoked_at IS NULL;

-- A destroyed version keeps its row, without material.
CREATE TABLE credential_versions (
    credential TEXT NOT NULL REFERENCES credentials (id),
    version INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    ciphertext BLOB,
    wrapped_key BLOB,
    master_key TEXT REFERENCES master_keys (id),
    created_at INTEGER NOT NULL,
    retire_until INTEGER,
    destroyed_at INTEGER,
    PRIMARY KEY (credential, version)
) STRICT;
CREATE INDEX versions_under_key ON credential_versions (master_key, credential, version) WHERE destroyed_at IS NULL;
CREATE INDEX versions_to_destroy ON credential_versions (retire_until)
    WHERE retire_until IS NOT NULL AND destroyed_at IS NULL;

CREATE TABLE grants (
    id TEXT NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL REFERENCES tenants (id),
    credential TEXT NOT NULL REFERENCES credentials (id),
    service TEXT NOT NULL,
    agent TEXT NOT NULL,
    granted_by TEXT NOT NULL,
    source TEXT REFERENCES grants (id),
    level INTEGER NOT NULL,
    scopes TEXT NOT NULL,
    constraints TEXT NOT NULL,
    context TEXT NOT NULL,
    delegatable INTEGER NOT NULL,
    delegation_depth INTEGER,
    expires_at INTEGER,
    created_at INTEGER NOT NULL,
    suspended_at INTEGER,
    suspended_by TEXT,
    expiry_announced_at INTEGER,
    revoked_at INTEGER
) STRICT;
CREATE INDEX grants_of_tenant ON grants (tenant, id);
CREATE INDEX grants_of_agent ON grants (tenant, agent, id);
CREATE INDEX grants_of_credential ON grants (credential, id);
CREATE INDEX grants_of_source ON grants (source, id) WHERE source IS NOT NULL;
-- Says nothing of `revoked_at`, so that revoking a hundred thousand grants touches no index.
CREATE INDEX grants_to_expire ON grants (expires_at) WHERE expires_at IS NOT NULL AND expiry_announced_at IS NULL;

-- `sequence` is the event's leaf in its tenant's tree, given when it is integrated; nothing else ever changes.
CREATE TABLE events (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant TEXT NOT NULL,
    sequence INTEGER,
    kind TEXT NOT NULL,
    actor TEXT NOT NULL,
    agent TEXT,
    intent TEXT,
    task TEXT,
    time INTEGER NOT NULL,
    leaf BLOB NOT NULL,
    canonical TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX events_in_sequence ON events (tenant, sequence) WHERE sequence IS NOT NULL;
CREATE INDEX events_to_integrate ON events (tenant, position) WHERE sequence IS NULL;
CREATE INDEX events_of_kind ON events (tenant, kind, sequence) WHERE sequence IS NOT NULL;
CREATE INDEX events_of_agent ON events (tenant, agent, sequence) WHERE sequence IS NOT NULL AND agent IS NOT NULL;

CREATE TABLE tiles (
    tenant TEXT NOT NULL,
    level INTEGER NOT NULL,
    position INTEGER NOT NULL,
    hashes BLOB NOT NULL,
    PRIMARY KEY (tenant, level, position)
) STRICT;

CREATE TABLE heads (
    tenant TEXT NOT NULL PRIMARY KEY,
    size INTEGER NOT NULL,
    root BLOB NOT NULL,
    time INTEGER NOT NULL,
    checkpoint TEXT NOT NULL
) STRICT;
