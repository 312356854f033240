-- Who exists, which secrets are kept, who may use which of them, and the log that proves it.
-- Times are milliseconds since 1970. JSON is text. Ids sort by the time they were made.

CREATE TABLE settings (
    name TEXT COLLATE "C" PRIMARY KEY,
    value TEXT COLLATE "C" NOT NULL
);

CREATE TABLE tenants (
    id TEXT COLLATE "C" PRIMARY KEY,
    name TEXT COLLATE "C",
    created_at BIGINT NOT NULL
);

CREATE TABLE principals (
    tenant TEXT COLLATE "C" NOT NULL REFERENCES tenants (id),
    id TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C",
    scopes TEXT COLLATE "C" NOT NULL,
    permissions TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    removed_at BIGINT,
    PRIMARY KEY (tenant, id)
);

CREATE TABLE keys (
    id TEXT COLLATE "C" PRIMARY KEY,
    tenant TEXT COLLATE "C" NOT NULL,
    principal TEXT COLLATE "C" NOT NULL,
    digest BYTEA NOT NULL UNIQUE,
    hint TEXT COLLATE "C" NOT NULL,
    label TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT,
    last_used_at BIGINT,
    FOREIGN KEY (tenant, principal) REFERENCES principals (tenant, id)
);
CREATE INDEX keys_of_principal ON keys (tenant, principal, id);

CREATE TABLE vaults (
    id TEXT COLLATE "C" PRIMARY KEY,
    tenant TEXT COLLATE "C" NOT NULL REFERENCES tenants (id),
    owner TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    deleted_at BIGINT
);
CREATE INDEX vaults_of_tenant ON vaults (tenant, id);

-- A master key that is retired takes no new material; that is what makes forgetting it safe.
CREATE TABLE master_keys (
    id TEXT COLLATE "C" PRIMARY KEY,
    retired_at BIGINT
);

CREATE TABLE credentials (
    id TEXT COLLATE "C" PRIMARY KEY,
    tenant TEXT COLLATE "C" NOT NULL REFERENCES tenants (id),
    vault TEXT COLLATE "C" NOT NULL REFERENCES vaults (id),
    service TEXT COLLATE "C" NOT NULL,
    label TEXT COLLATE "C" NOT NULL,
    auth_type TEXT COLLATE "C" NOT NULL,
    scopes_available TEXT COLLATE "C" NOT NULL,
    metadata TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    material_fields TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    rotated_at BIGINT NOT NULL,
    expires_at BIGINT,
    expiry_announced_at BIGINT,
    revoked_at BIGINT
);
CREATE INDEX credentials_of_tenant ON credentials (tenant, id);
CREATE INDEX credentials_of_vault ON credentials (vault, id);
CREATE INDEX credentials_to_expire ON credentials (expires_at)
    WHERE expires_at IS NOT NULL AND expiry_announced_at IS NULL AND revoked_at IS NULL;

-- A destroyed version keeps its row, without material.
CREATE TABLE credential_versions (
    credential TEXT COLLATE "C" NOT NULL REFERENCES credentials (id),
    version BIGINT NOT NULL,
    tenant TEXT COLLATE "C" NOT NULL,
    ciphertext BYTEA,
    wrapped_key BYTEA,
    master_key TEXT COLLATE "C" REFERENCES master_keys (id),
    created_at BIGINT NOT NULL,
    retire_until BIGINT,
    destroyed_at BIGINT,
    PRIMARY KEY (credential, version)
);
CREATE INDEX versions_under_key ON credential_versions (master_key, credential, version) WHERE destroyed_at IS NULL;
CREATE INDEX versions_to_destroy ON credential_versions (retire_until)
    WHERE retire_until IS NOT NULL AND destroyed_at IS NULL;

CREATE TABLE grants (
    id TEXT COLLATE "C" PRIMARY KEY,
    tenant TEXT COLLATE "C" NOT NULL REFERENCES tenants (id),
    credential TEXT COLLATE "C" NOT NULL REFERENCES credentials (id),
    service TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    granted_by TEXT COLLATE "C" NOT NULL,
    source TEXT COLLATE "C" REFERENCES grants (id),
    level BIGINT NOT NULL,
    scopes TEXT COLLATE "C" NOT NULL,
    constraints TEXT COLLATE "C" NOT NULL,
    context TEXT COLLATE "C" NOT NULL,
    delegatable BIGINT NOT NULL,
    delegation_depth BIGINT,
    expires_at BIGINT,
    created_at BIGINT NOT NULL,
    suspended_at BIGINT,
    suspended_by TEXT COLLATE "C",
    expiry_announced_at BIGINT,
    revoked_at BIGINT
) WITH (fillfactor = 70);
CREATE INDEX grants_of_tenant ON grants (tenant, id);
CREATE INDEX grants_of_agent ON grants (tenant, agent, id);
CREATE INDEX grants_of_credential ON grants (credential, id);
CREATE INDEX grants_of_source ON grants (source, id) WHERE source IS NOT NULL;
-- Says nothing of `revoked_at`, so that revoking a hundred thousand grants touches no index.
CREATE INDEX grants_to_expire ON grants (expires_at) WHERE expires_at IS NOT NULL AND expiry_announced_at IS NULL;

-- `sequence` is the event's leaf in its tenant's tree, given when it is integrated; nothing else ever changes.
CREATE TABLE events (
    position BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant TEXT COLLATE "C" NOT NULL,
    sequence BIGINT,
    kind TEXT COLLATE "C" NOT NULL,
    actor TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C",
    intent TEXT COLLATE "C",
    task TEXT COLLATE "C",
    time BIGINT NOT NULL,
    leaf BYTEA NOT NULL,
    canonical TEXT COLLATE "C" NOT NULL
);
CREATE UNIQUE INDEX events_in_sequence ON events (tenant, sequence) WHERE sequence IS NOT NULL;
CREATE INDEX events_to_integrate ON events (tenant, position) WHERE sequence IS NULL;
CREATE INDEX events_of_kind ON events (tenant, kind, sequence) WHERE sequence IS NOT NULL;
CREATE INDEX events_of_agent ON events (tenant, agent, sequence) WHERE sequence IS NOT NULL AND agent IS NOT NULL;

CREATE TABLE tiles (
    tenant TEXT COLLATE "C" NOT NULL,
    level BIGINT NOT NULL,
    position BIGINT NOT NULL,
    hashes BYTEA NOT NULL,
    PRIMARY KEY (tenant, level, position)
);

CREATE TABLE heads (
    tenant TEXT COLLATE "C" PRIMARY KEY,
    size BIGINT NOT NULL,
    root BYTEA NOT NULL,
    time BIGINT NOT NULL,
    checkpoint TEXT COLLATE "C" NOT NULL
);
