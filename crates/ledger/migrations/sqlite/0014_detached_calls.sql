-- Calls that wait here instead of on a connection.
CREATE TABLE detached_calls (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    agent TEXT NOT NULL,
    actor TEXT NOT NULL,
    key TEXT NOT NULL,
    tool TEXT NOT NULL,
    idempotency_key TEXT,
    request_digest TEXT,
    -- ready, waiting, running, finished.
    state TEXT NOT NULL,
    -- The process that runs it.
    claimed_by TEXT,
    claimed_at INTEGER,
    -- The approvals that were asked for, as JSON.
    asked TEXT NOT NULL DEFAULT '[]',
    cancelled INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    finished_at INTEGER,
    -- What the caller sent; once it has ended, what the caller gets.
    ciphertext BLOB,
    wrapped_key BLOB,
    master_key TEXT REFERENCES master_keys (id),
    PRIMARY KEY (tenant, id)
) STRICT;
CREATE INDEX detached_calls_of_agent ON detached_calls (tenant, agent, id);
CREATE INDEX detached_calls_ready ON detached_calls (id) WHERE state = 'ready';
CREATE INDEX detached_calls_running ON detached_calls (id) WHERE state = 'running';
CREATE INDEX detached_calls_by_end ON detached_calls (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX detached_calls_under_key ON detached_calls (master_key, id) WHERE master_key IS NOT NULL;
CREATE UNIQUE INDEX detached_calls_by_key ON detached_calls (tenant, agent, idempotency_key)
    WHERE idempotency_key IS NOT NULL;

-- An approval of a detached call waits for no process.
ALTER TABLE approvals ADD COLUMN detached INTEGER NOT NULL DEFAULT 0;

-- Whether calls of a principal that must wait for an approver are detached.
ALTER TABLE principals ADD COLUMN detaches INTEGER NOT NULL DEFAULT 0;
