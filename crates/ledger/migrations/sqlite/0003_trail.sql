-- The one writer gives every event its place in its tenant's log as it writes it; nothing of an event changes afterwards.
CREATE TABLE ordered_events (
    position INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    kind TEXT NOT NULL,
    actor TEXT NOT NULL,
    agent TEXT,
    intent TEXT,
    task TEXT,
    time INTEGER NOT NULL,
    leaf BLOB NOT NULL,
    canonical TEXT NOT NULL
) STRICT;
INSERT INTO ordered_events (position, tenant, sequence, kind, actor, agent, intent, task, time, leaf, canonical)
    SELECT position, tenant, row_number() OVER (PARTITION BY tenant ORDER BY sequence IS NULL, sequence, position) - 1,
        kind, actor, agent, intent, task, time, leaf, canonical
    FROM events ORDER BY position;
DROP TABLE events;
ALTER TABLE ordered_events RENAME TO events;
CREATE UNIQUE INDEX events_in_sequence ON events (tenant, sequence);
-- Most events tell of calls, so that looking for those by their kind needs no help: the others are what is looked for.
CREATE INDEX events_of_kind ON events (tenant, kind, sequence)
    WHERE kind <> 'agent.toolCalled' AND kind <> 'tool.invoked';
CREATE INDEX events_of_agent ON events (tenant, agent, sequence) WHERE agent IS NOT NULL;

-- What the trail of calls is followed by.
ALTER TABLE events ADD COLUMN run TEXT;
ALTER TABLE events ADD COLUMN tool TEXT;
CREATE INDEX events_of_run ON events (tenant, run, sequence) WHERE run IS NOT NULL;
ALTER TABLE invocations ADD COLUMN run TEXT;
ALTER TABLE invocations ADD COLUMN by_agent INTEGER NOT NULL DEFAULT 1;
ALTER TABLE invocations ADD COLUMN transport TEXT NOT NULL DEFAULT 'http';

-- When the token bucket of a principal for a tool is full again.
CREATE TABLE tool_buckets (
    tenant TEXT NOT NULL,
    principal TEXT NOT NULL,
    tool TEXT NOT NULL,
    state INTEGER NOT NULL,
    PRIMARY KEY (tenant, principal, tool)
) STRICT, WITHOUT ROWID;

-- What a principal may call how often, which tools exist for it, and how often it was changed.
ALTER TABLE principals ADD COLUMN rate_limits TEXT NOT NULL DEFAULT '{}';
ALTER TABLE principals ADD COLUMN tool_allowlist TEXT;
ALTER TABLE principals ADD COLUMN revision INTEGER NOT NULL DEFAULT 1;

-- Multi-step uses of a tool that have not come to their end.
CREATE TABLE tool_sessions (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    principal TEXT NOT NULL,
    tool TEXT NOT NULL,
    run TEXT NOT NULL,
    opened_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX tool_sessions_by_end ON tool_sessions (expires_at);
ALTER TABLE invocations ADD COLUMN session TEXT;
CREATE INDEX invocations_of_session ON invocations (tenant, session, status) WHERE session IS NOT NULL;
