-- Which agent a task or context of a peer agent belongs to. Peers take all callers for one, because all share a credential.
CREATE TABLE agent_tasks (
    tenant TEXT NOT NULL,
    -- The service of the peer.
    peer TEXT NOT NULL,
    -- `task` or `context`.
    kind TEXT NOT NULL,
    -- As the peer chose it.
    id TEXT NOT NULL,
    -- The agent that it belongs to, and the grant under which it was begun.
    agent TEXT NOT NULL,
    grant_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, peer, kind, id)
) STRICT;
CREATE INDEX agent_tasks_by_agent ON agent_tasks (tenant, agent, created_at);
CREATE INDEX agent_tasks_by_grant ON agent_tasks (grant_id);

-- What speaks at the address of a mount: `mcp`, or `a2a` for a peer agent.
ALTER TABLE mounts ADD COLUMN protocol TEXT NOT NULL DEFAULT 'mcp';
