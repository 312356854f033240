-- Which services can be called, and what stays of every call.

-- Counts the changes of a tenant's registry, so that what was built from it knows when it is old.
CREATE TABLE registries (
    tenant TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES tenants (id),
    revision BIGINT NOT NULL
);

CREATE TABLE services (
    tenant TEXT COLLATE "C" NOT NULL REFERENCES tenants (id),
    service TEXT COLLATE "C" NOT NULL,
    version TEXT COLLATE "C" NOT NULL,
    definition TEXT COLLATE "C" NOT NULL,
    -- The order in which versions came: the last one is used where none is named.
    place BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, service, version)
);

CREATE TABLE invocations (
    tenant TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    grant_id TEXT COLLATE "C",
    agent TEXT COLLATE "C" NOT NULL,
    actor TEXT COLLATE "C" NOT NULL,
    service TEXT COLLATE "C",
    tool TEXT COLLATE "C" NOT NULL,
    version TEXT COLLATE "C",
    status TEXT COLLATE "C" NOT NULL,
    error_code TEXT COLLATE "C",
    error_reason TEXT COLLATE "C",
    parameters TEXT COLLATE "C" NOT NULL,
    arguments_hash TEXT COLLATE "C" NOT NULL,
    fingerprint TEXT COLLATE "C",
    http_status BIGINT,
    cost BIGINT,
    duration_ms BIGINT,
    idempotency_key TEXT COLLATE "C",
    intent TEXT COLLATE "C",
    plan TEXT COLLATE "C",
    task TEXT COLLATE "C",
    reported BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    -- When a running call is taken for cut off.
    deadline BIGINT,
    PRIMARY KEY (tenant, id)
) WITH (fillfactor = 80);
CREATE INDEX invocations_of_grant ON invocations (grant_id, id) WHERE grant_id IS NOT NULL;
CREATE INDEX invocations_of_agent ON invocations (tenant, agent, id);
CREATE INDEX invocations_of_intent ON invocations (tenant, intent, id) WHERE intent IS NOT NULL;
CREATE INDEX invocations_of_task ON invocations (tenant, task, id) WHERE task IS NOT NULL;
CREATE INDEX invocations_running ON invocations (deadline) WHERE status = 'running';

-- The last calls through a grant that allows so many in an hour: a ring of that many places, each with the time of the
-- call that took it. `taken` counts the calls; the next one takes place `taken` modulo the limit, if the call there is an
-- hour old.
CREATE TABLE rates (
    grant_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    taken BIGINT NOT NULL
);
CREATE TABLE rate_places (
    grant_id TEXT COLLATE "C" NOT NULL,
    place BIGINT NOT NULL,
    time BIGINT NOT NULL,
    PRIMARY KEY (grant_id, place)
);

CREATE TABLE idempotency_keys (
    tenant TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    request_digest TEXT COLLATE "C" NOT NULL,
    invocation TEXT COLLATE "C" NOT NULL,
    answer TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, agent, key)
);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);
