-- Which agent a task or context of a peer agent belongs to. Peers take all callers for one, because all share a credential.
CREATE TABLE agent_tasks (
    tenant TEXT COLLATE "C" NOT NULL,
    -- The service of the peer.
    peer TEXT COLLATE "C" NOT NULL,
    -- `task` or `context`.
    kind TEXT COLLATE "C" NOT NULL,
    -- As the peer chose it.
    id TEXT COLLATE "C" NOT NULL,
    -- The agent that it belongs to, and the grant under which it was begun.
    agent TEXT COLLATE "C" NOT NULL,
    grant_id TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, peer, kind, id)
);
CREATE INDEX agent_tasks_by_agent ON agent_tasks (tenant, agent, created_at);
CREATE INDEX agent_tasks_by_grant ON agent_tasks (grant_id);

-- What speaks at the address of a mount: `mcp`, or `a2a` for a peer agent.
ALTER TABLE mounts ADD COLUMN protocol TEXT COLLATE "C" NOT NULL DEFAULT 'mcp';
