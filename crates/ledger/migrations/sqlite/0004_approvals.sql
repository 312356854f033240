-- What people are asked, what their answers cover, and who waits for them. What is searched or raced for has a column of
-- its own; everything else is in the body, as JSON.

CREATE TABLE approvals (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    status TEXT NOT NULL,
    agent TEXT NOT NULL,
    tool TEXT NOT NULL,
    invocation TEXT NOT NULL,
    -- In which process the call waits.
    process TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    resolved_at INTEGER,
    -- Whether the process was told of the end.
    collected INTEGER NOT NULL DEFAULT 0,
    -- The call that was made by this answer: one at most.
    used_by TEXT,
    arguments_kept INTEGER NOT NULL DEFAULT 1,
    body TEXT NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT;
CREATE INDEX approvals_pending ON approvals (tenant, id) WHERE status = 'pending';
CREATE INDEX approvals_pending_of_agent ON approvals (tenant, agent, id) WHERE status = 'pending';
CREATE INDEX approvals_pending_by_end ON approvals (expires_at) WHERE status = 'pending';
CREATE INDEX approvals_pending_by_process ON approvals (process, created_at) WHERE status = 'pending';
CREATE INDEX approvals_of_invocation ON approvals (tenant, invocation, id);
CREATE INDEX approvals_to_collect ON approvals (process) WHERE status <> 'pending' AND collected = 0;
CREATE INDEX approvals_to_forget ON approvals (resolved_at) WHERE arguments_kept = 1 AND resolved_at IS NOT NULL;

-- Answers that came under a name of the caller's own, so that the same one again is not another.
CREATE TABLE approval_votes (
    tenant TEXT NOT NULL,
    approval TEXT NOT NULL,
    decider TEXT NOT NULL,
    key TEXT NOT NULL,
    request_digest TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, approval, decider, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE standing_approvals (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    agent TEXT NOT NULL,
    tool TEXT NOT NULL,
    expires_at INTEGER,
    max_uses INTEGER,
    used INTEGER NOT NULL,
    revoked_at INTEGER,
    body TEXT NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT;
CREATE INDEX standing_approvals_of_agent ON standing_approvals (tenant, agent, tool, id) WHERE revoked_at IS NULL;

-- What was set for a session; where nothing was, there is no row.
CREATE TABLE approval_sessions (
    tenant TEXT NOT NULL,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    mode TEXT,
    wait_ms INTEGER,
    attendance TEXT,
    PRIMARY KEY (tenant, owner, name)
) STRICT, WITHOUT ROWID;

-- Which processes live, and for which tenants each has somebody who can answer.
CREATE TABLE processes (
    id TEXT NOT NULL PRIMARY KEY,
    seen_at INTEGER NOT NULL,
    attended TEXT NOT NULL
) STRICT, WITHOUT ROWID;
