-- Coordinated work: intents, their plans and tasks, leases, coordinators, events and recorded costs. What no rule of the
-- ledger depends on is JSON in `details`.

CREATE TABLE intents (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant TEXT COLLATE "C" NOT NULL REFERENCES tenants (id),
    version BIGINT NOT NULL,
    status TEXT COLLATE "C" NOT NULL,
    title TEXT COLLATE "C" NOT NULL,
    description TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    constraints TEXT COLLATE "C" NOT NULL,
    parent TEXT COLLATE "C",
    depends_on TEXT COLLATE "C" NOT NULL,
    created_by TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX intents_of_tenant ON intents (tenant, id);
CREATE INDEX intents_of_creator ON intents (tenant, created_by, id);

CREATE TABLE participants (
    intent TEXT COLLATE "C" NOT NULL REFERENCES intents (id),
    agent TEXT COLLATE "C" NOT NULL,
    tenant TEXT COLLATE "C" NOT NULL,
    role TEXT COLLATE "C" NOT NULL,
    assigned_by TEXT COLLATE "C" NOT NULL,
    assigned_at BIGINT NOT NULL,
    PRIMARY KEY (intent, agent)
);
CREATE INDEX participants_of_agent ON participants (tenant, agent);

CREATE TABLE plans (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant TEXT COLLATE "C" NOT NULL,
    intent TEXT COLLATE "C" NOT NULL REFERENCES intents (id),
    version BIGINT NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    details TEXT COLLATE "C" NOT NULL,
    created_by TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX plans_of_intent ON plans (intent, id);

CREATE TABLE tasks (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant TEXT COLLATE "C" NOT NULL,
    intent TEXT COLLATE "C" NOT NULL REFERENCES intents (id),
    plan TEXT COLLATE "C" REFERENCES plans (id),
    version BIGINT NOT NULL,
    status TEXT COLLATE "C" NOT NULL,
    assigned_agent TEXT COLLATE "C",
    lease TEXT COLLATE "C",
    attempt BIGINT NOT NULL,
    max_attempts BIGINT NOT NULL,
    timeout_seconds BIGINT,
    deadline BIGINT,
    details TEXT COLLATE "C" NOT NULL,
    created_by TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    started_at BIGINT,
    completed_at BIGINT,
    -- When the agent that has it loses it.
    due BIGINT
);
CREATE INDEX tasks_of_intent ON tasks (intent, id);
CREATE INDEX tasks_of_plan ON tasks (plan, id) WHERE plan IS NOT NULL;
CREATE INDEX tasks_of_agent ON tasks (tenant, assigned_agent, status) WHERE assigned_agent IS NOT NULL;
CREATE INDEX tasks_by_due ON tasks (due) WHERE due IS NOT NULL;

CREATE TABLE task_dependencies (
    task TEXT COLLATE "C" NOT NULL REFERENCES tasks (id),
    depends_on TEXT COLLATE "C" NOT NULL REFERENCES tasks (id),
    PRIMARY KEY (task, depends_on)
);
CREATE INDEX task_dependents ON task_dependencies (depends_on, task);

CREATE TABLE leases (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant TEXT COLLATE "C" NOT NULL,
    intent TEXT COLLATE "C" NOT NULL REFERENCES intents (id),
    agent TEXT COLLATE "C" NOT NULL,
    scope TEXT COLLATE "C" NOT NULL,
    task TEXT COLLATE "C",
    status TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    ended_at BIGINT
);
CREATE UNIQUE INDEX leases_live ON leases (intent, scope) WHERE ended_at IS NULL;
CREATE INDEX leases_by_expiry ON leases (expires_at) WHERE ended_at IS NULL;

CREATE TABLE coordinators (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant TEXT COLLATE "C" NOT NULL,
    intent TEXT COLLATE "C" NOT NULL REFERENCES intents (id),
    agent TEXT COLLATE "C" NOT NULL,
    supervisor TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    status TEXT COLLATE "C" NOT NULL,
    role TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    guardrails TEXT COLLATE "C" NOT NULL,
    heartbeat_seconds BIGINT NOT NULL,
    last_heartbeat BIGINT,
    granted_at BIGINT NOT NULL,
    expires_at BIGINT,
    metadata TEXT COLLATE "C" NOT NULL,
    ended_at BIGINT,
    -- When the sweep has to look at it: its expiry, or the end of its last heartbeat.
    due BIGINT
);
CREATE INDEX coordinators_of_intent ON coordinators (intent, id);
CREATE INDEX coordinators_of_agent ON coordinators (tenant, agent) WHERE ended_at IS NULL;
CREATE INDEX coordinators_of_supervisor ON coordinators (tenant, supervisor);
CREATE INDEX coordinators_by_due ON coordinators (due) WHERE due IS NOT NULL;

CREATE TABLE intent_events (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant TEXT COLLATE "C" NOT NULL,
    intent TEXT COLLATE "C" NOT NULL REFERENCES intents (id),
    kind TEXT COLLATE "C" NOT NULL,
    actor TEXT COLLATE "C" NOT NULL,
    payload TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX intent_events_of_intent ON intent_events (intent, id);

CREATE TABLE costs (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant TEXT COLLATE "C" NOT NULL,
    intent TEXT COLLATE "C" NOT NULL REFERENCES intents (id),
    task TEXT COLLATE "C",
    agent TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    amount BIGINT NOT NULL,
    unit TEXT COLLATE "C" NOT NULL,
    provider TEXT COLLATE "C",
    metadata TEXT COLLATE "C" NOT NULL,
    recorded_at BIGINT NOT NULL
);
CREATE INDEX costs_of_intent ON costs (intent, id);

-- The task of this ledger that a grant is bound to: the grant ends with it.
ALTER TABLE grants ADD COLUMN task TEXT COLLATE "C";
CREATE INDEX grants_of_task ON grants (task) WHERE task IS NOT NULL;

-- Counts the changes of coordinators and of who takes part in an intent, as `revision` counts those of tools.
ALTER TABLE registries ADD COLUMN work BIGINT NOT NULL DEFAULT 0;
