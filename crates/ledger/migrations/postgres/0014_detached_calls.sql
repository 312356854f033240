-- Calls that wait here instead of on a connection.
CREATE TABLE detached_calls (
    tenant TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    actor TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    tool TEXT COLLATE "C" NOT NULL,
    idempotency_key TEXT COLLATE "C",
    request_digest TEXT COLLATE "C",
    -- ready, waiting, running, finished.
    state TEXT COLLATE "C" NOT NULL,
    -- The process that runs it.
    claimed_by TEXT COLLATE "C",
    claimed_at BIGINT,
    -- The approvals that were asked for, as JSON.
    asked TEXT COLLATE "C" NOT NULL DEFAULT '[]',
    cancelled BIGINT NOT NULL DEFAULT 0,
    attempts BIGINT NOT NULL DEFAULT 0,
    created_at BIGINT NOT NULL,
    finished_at BIGINT,
    -- What the caller sent; once it has ended, what the caller gets.
    ciphertext BYTEA,
    wrapped_key BYTEA,
    master_key TEXT COLLATE "C" REFERENCES master_keys (id),
    PRIMARY KEY (tenant, id)
);
CREATE INDEX detached_calls_of_agent ON detached_calls (tenant, agent, id);
CREATE INDEX detached_calls_ready ON detached_calls (id) WHERE state = 'ready';
CREATE INDEX detached_calls_running ON detached_calls (id) WHERE state = 'running';
CREATE INDEX detached_calls_by_end ON detached_calls (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX detached_calls_under_key ON detached_calls (master_key, id) WHERE master_key IS NOT NULL;
CREATE UNIQUE INDEX detached_calls_by_key ON detached_calls (tenant, agent, idempotency_key)
    WHERE idempotency_key IS NOT NULL;

-- An approval of a detached call waits for no process.
ALTER TABLE approvals ADD COLUMN detached BIGINT NOT NULL DEFAULT 0;

-- Whether calls of a principal that must wait for an approver are detached.
ALTER TABLE principals ADD COLUMN detaches BIGINT NOT NULL DEFAULT 0;
