-- What people are asked, what their answers cover, and who waits for them. What is searched or raced for has a column of
-- its own; everything else is in the body, as JSON.

CREATE TABLE approvals (
    tenant TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    tool TEXT COLLATE "C" NOT NULL,
    invocation TEXT COLLATE "C" NOT NULL,
    -- In which process the call waits.
    process TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    resolved_at BIGINT,
    -- Whether the process was told of the end.
    collected BIGINT NOT NULL DEFAULT 0,
    -- The call that was made by this answer: one at most.
    used_by TEXT COLLATE "C",
    arguments_kept BIGINT NOT NULL DEFAULT 1,
    body TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX approvals_pending ON approvals (tenant, id) WHERE status = 'pending';
CREATE INDEX approvals_pending_of_agent ON approvals (tenant, agent, id) WHERE status = 'pending';
CREATE INDEX approvals_pending_by_end ON approvals (expires_at) WHERE status = 'pending';
CREATE INDEX approvals_pending_by_process ON approvals (process, created_at) WHERE status = 'pending';
CREATE INDEX approvals_of_invocation ON approvals (tenant, invocation, id);
CREATE INDEX approvals_to_collect ON approvals (process) WHERE status <> 'pending' AND collected = 0;
CREATE INDEX approvals_to_forget ON approvals (resolved_at) WHERE arguments_kept = 1 AND resolved_at IS NOT NULL;

-- Answers that came under a name of the caller's own, so that the same one again is not another.
CREATE TABLE approval_votes (
    tenant TEXT COLLATE "C" NOT NULL,
    approval TEXT COLLATE "C" NOT NULL,
    decider TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    request_digest TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, approval, decider, key)
);

CREATE TABLE standing_approvals (
    tenant TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    tool TEXT COLLATE "C" NOT NULL,
    expires_at BIGINT,
    max_uses BIGINT,
    used BIGINT NOT NULL,
    revoked_at BIGINT,
    body TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX standing_approvals_of_agent ON standing_approvals (tenant, agent, tool, id) WHERE revoked_at IS NULL;

-- What was set for a session; where nothing was, there is no row.
CREATE TABLE approval_sessions (
    tenant TEXT COLLATE "C" NOT NULL,
    owner TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    mode TEXT COLLATE "C",
    wait_ms BIGINT,
    attendance TEXT COLLATE "C",
    PRIMARY KEY (tenant, owner, name)
);

-- Which processes live, and for which tenants each has somebody who can answer.
CREATE TABLE processes (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    seen_at BIGINT NOT NULL,
    attended TEXT COLLATE "C" NOT NULL
);
