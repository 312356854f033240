-- Which services can be called, and what stays of every call.

-- Counts the changes of a tenant's registry, so that what was built from it knows when it is old.
CREATE TABLE registries (
    tenant TEXT NOT NULL PRIMARY KEY REFERENCES tenants (id),
    revision INTEGER NOT NULL
) STRICT;

CREATE TABLE services (
    tenant TEXT NOT NULL REFERENCES tenants (id),
    service TEXT NOT NULL,
    version TEXT NOT NULL,
    definition TEXT NOT NULL,
    -- The order in which versions came: the last one is used where none is named.
    place INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, service, version)
) STRICT;

CREATE TABLE invocations (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    grant_id TEXT,
    agent TEXT NOT NULL,
    actor TEXT NOT NULL,
    service TEXT,
    tool TEXT NOT NULL,
    version TEXT,
    status TEXT NOT NULL,
    error_code TEXT,
    error_reason TEXT,
    parameters TEXT NOT NULL,
    arguments_hash TEXT NOT NULL,
    fingerprint TEXT,
    http_status INTEGER,
    cost INTEGER,
    duration_ms INTEGER,
    idempotency_key TEXT,
    intent TEXT,
    plan TEXT,
    task TEXT,
    reported INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    -- When a running call is taken for cut off.
    deadline INTEGER,
    PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX invocations_of_grant ON invocations (grant_id, id) WHERE grant_id IS NOT NULL;
CREATE INDEX invocations_of_agent ON invocations (tenant, agent, id);
CREATE INDEX invocations_of_intent ON invocations (tenant, intent, id) WHERE intent IS NOT NULL;
CREATE INDEX invocations_of_task ON invocations (tenant, task, id) WHERE task IS NOT NULL;
CREATE INDEX invocations_running ON invocations (deadline) WHERE status = 'running';

-- The last calls through a grant that allows so many in an hour: a ring of that many places, each with the time of the
-- call that took it. `taken` counts the calls; the next one takes place `taken` modulo the limit, if the call there is an
-- hour old.
CREATE TABLE rates (
    grant_id TEXT NOT NULL PRIMARY KEY,
    taken INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE rate_places (
    grant_id TEXT NOT NULL,
    place INTEGER NOT NULL,
    time INTEGER NOT NULL,
    PRIMARY KEY (grant_id, place)
) STRICT, WITHOUT ROWID;

CREATE TABLE idempotency_keys (
    tenant TEXT NOT NULL,
    agent TEXT NOT NULL,
    key TEXT NOT NULL,
    request_digest TEXT NOT NULL,
    invocation TEXT NOT NULL,
    answer TEXT,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, agent, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);
