-- Most events tell of calls, so that looking for those by their kind needs no help: the others are what is looked for.
DROP INDEX events_of_kind;
CREATE INDEX events_of_kind ON events (tenant, kind, sequence)
    WHERE sequence IS NOT NULL AND kind <> 'agent.toolCalled' AND kind <> 'tool.invoked';

-- What the trail of calls is followed by.
ALTER TABLE events ADD COLUMN run TEXT;
ALTER TABLE events ADD COLUMN tool TEXT;
CREATE INDEX events_of_run ON events (tenant, run, sequence) WHERE run IS NOT NULL AND sequence IS NOT NULL;
ALTER TABLE invocations ADD COLUMN run TEXT;
ALTER TABLE invocations ADD COLUMN by_agent BIGINT NOT NULL DEFAULT 1;
ALTER TABLE invocations ADD COLUMN transport TEXT NOT NULL DEFAULT 'http';

-- When the token bucket of a principal for a tool is full again.
CREATE TABLE tool_buckets (
    tenant TEXT NOT NULL,
    principal TEXT NOT NULL,
    tool TEXT NOT NULL,
    state BIGINT NOT NULL,
    PRIMARY KEY (tenant, principal, tool)
);

-- What a principal may call how often, which tools exist for it, and how often it was changed.
ALTER TABLE principals ADD COLUMN rate_limits TEXT COLLATE "C" NOT NULL DEFAULT '{}';
ALTER TABLE principals ADD COLUMN tool_allowlist TEXT COLLATE "C";
ALTER TABLE principals ADD COLUMN revision BIGINT NOT NULL DEFAULT 1;

-- Multi-step uses of a tool that have not come to their end.
CREATE TABLE tool_sessions (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    principal TEXT NOT NULL,
    tool TEXT NOT NULL,
    run TEXT NOT NULL,
    opened_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX tool_sessions_by_end ON tool_sessions (expires_at);
ALTER TABLE invocations ADD COLUMN session TEXT;
CREATE INDEX invocations_of_session ON invocations (tenant, session, status) WHERE session IS NOT NULL;
