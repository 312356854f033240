-- Coordinated work: intents, their plans and tasks, leases, coordinators, events and recorded costs. What no rule of the
-- ledger depends on is JSON in `details`.

CREATE TABLE intents (
    id TEXT NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL REFERENCES tenants (id),
    version INTEGER NOT NULL,
    status TEXT NOT NULL,
    title TEXT NOT NULL,
    description TEXT NOT NULL,
    state TEXT NOT NULL,
    constraints TEXT NOT NULL,
    parent TEXT,
    depends_on TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX intents_of_tenant ON intents (tenant, id);
CREATE INDEX intents_of_creator ON intents (tenant, created_by, id);

CREATE TABLE participants (
    intent TEXT NOT NULL REFERENCES intents (id),
    agent TEXT NOT NULL,
    tenant TEXT NOT NULL,
    role TEXT NOT NULL,
    assigned_by TEXT NOT NULL,
    assigned_at INTEGER NOT NULL,
    PRIMARY KEY (intent, agent)
) STRICT, WITHOUT ROWID;
CREATE INDEX participants_of_agent ON participants (tenant, agent);

CREATE TABLE plans (
    id TEXT NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL,
    intent TEXT NOT NULL REFERENCES intents (id),
    version INTEGER NOT NULL,
    state TEXT NOT NULL,
    details TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX plans_of_intent ON plans (intent, id);

CREATE TABLE tasks (
    id TEXT NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL,
    intent TEXT NOT NULL REFERENCES intents (id),
    plan TEXT REFERENCES plans (id),
    version INTEGER NOT NULL,
    status TEXT NOT NULL,
    assigned_agent TEXT,
    lease TEXT,
    attempt INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    timeout_seconds INTEGER,
    deadline INTEGER,
    details TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    completed_at INTEGER,
    -- When the agent that has it loses it.
    due INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX tasks_of_intent ON tasks (intent, id);
CREATE INDEX tasks_of_plan ON tasks (plan, id) WHERE plan IS NOT NULL;
CREATE INDEX tasks_of_agent ON tasks (tenant, assigned_agent, status) WHERE assigned_agent IS NOT NULL;
CREATE INDEX tasks_by_due ON tasks (due) WHERE due IS NOT NULL;

CREATE TABLE task_dependencies (
    task TEXT NOT NULL REFERENCES tasks (id),
    depends_on TEXT NOT NULL REFERENCES tasks (id),
    PRIMARY KEY (task, depends_on)
) STRICT, WITHOUT ROWID;
CREATE INDEX task_dependents ON task_dependencies (depends_on, task);

CREATE TABLE leases (
    id TEXT NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL,
    intent TEXT NOT NULL REFERENCES intents (id),
    agent TEXT NOT NULL,
    scope TEXT NOT NULL,
    task TEXT,
    status TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    ended_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX leases_live ON leases (intent, scope) WHERE ended_at IS NULL;
CREATE INDEX leases_by_expiry ON leases (expires_at) WHERE ended_at IS NULL;

CREATE TABLE coordinators (
    id TEXT NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL,
    intent TEXT NOT NULL REFERENCES intents (id),
    agent TEXT NOT NULL,
    supervisor TEXT NOT NULL,
    version INTEGER NOT NULL,
    status TEXT NOT NULL,
    role TEXT NOT NULL,
    kind TEXT NOT NULL,
    guardrails TEXT NOT NULL,
    heartbeat_seconds INTEGER NOT NULL,
    last_heartbeat INTEGER,
    granted_at INTEGER NOT NULL,
    expires_at INTEGER,
    metadata TEXT NOT NULL,
    ended_at INTEGER,
    -- When the sweep has to look at it: its expiry, or the end of its last heartbeat.
    due INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX coordinators_of_intent ON coordinators (intent, id);
CREATE INDEX coordinators_of_agent ON coordinators (tenant, agent) WHERE ended_at IS NULL;
CREATE INDEX coordinators_of_supervisor ON coordinators (tenant, supervisor);
CREATE INDEX coordinators_by_due ON coordinators (due) WHERE due IS NOT NULL;

CREATE TABLE intent_events (
    id TEXT NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL,
    intent TEXT NOT NULL REFERENCES intents (id),
    kind TEXT NOT NULL,
    actor TEXT NOT NULL,
    payload TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX intent_events_of_intent ON intent_events (intent, id);

CREATE TABLE costs (
    id TEXT NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL,
    intent TEXT NOT NULL REFERENCES intents (id),
    task TEXT,
    agent TEXT NOT NULL,
    kind TEXT NOT NULL,
    amount INTEGER NOT NULL,
    unit TEXT NOT NULL,
    provider TEXT,
    metadata TEXT NOT NULL,
    recorded_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX costs_of_intent ON costs (intent, id);

-- The task of this ledger that a grant is bound to: the grant ends with it.
ALTER TABLE grants ADD COLUMN task TEXT;
CREATE INDEX grants_of_task ON grants (task) WHERE task IS NOT NULL;

-- Counts the changes of coordinators and of who takes part in an intent, as `revision` counts those of tools.
ALTER TABLE registries ADD COLUMN work INTEGER NOT NULL DEFAULT 0;
