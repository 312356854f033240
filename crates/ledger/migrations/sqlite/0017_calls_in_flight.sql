-- Calls that are admitted and not settled, with the columns of `invocations`: what becomes of a call is then written once, into
-- `invocations`. A row with status `denied` keeps an admission out that arrives after its caller has given up; nothing reads
-- it, and it is deleted when its deadline is past.
CREATE TABLE calls_in_flight (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL PRIMARY KEY,
    grant_id TEXT,
    agent TEXT NOT NULL,
    actor TEXT NOT NULL,
    service TEXT,
    tool TEXT NOT NULL,
    version TEXT,
    status TEXT NOT NULL,
    error_code TEXT,
    error_reason TEXT,
    parameters TEXT NOT NULL,
    arguments_hash TEXT NOT NULL,
    fingerprint TEXT,
    http_status INTEGER,
    cost INTEGER,
    duration_ms INTEGER,
    idempotency_key TEXT,
    intent TEXT,
    plan TEXT,
    task TEXT,
    reported INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    run TEXT,
    by_agent INTEGER NOT NULL,
    transport TEXT NOT NULL,
    session TEXT,
    -- When a running call is taken for cut off.
    deadline INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO calls_in_flight (tenant, id, grant_id, agent, actor, service, tool, version, status, error_code, error_reason, parameters,
        arguments_hash, fingerprint, http_status, cost, duration_ms, idempotency_key, intent, plan, task, reported,
        created_at, run, by_agent, transport, session, deadline)
    SELECT tenant, id, grant_id, agent, actor, service, tool, version, status, error_code, error_reason, parameters,
        arguments_hash, fingerprint, http_status, cost, duration_ms, idempotency_key, intent, plan, task, reported,
        created_at, run, by_agent, transport, session, COALESCE(deadline, 0)
    FROM invocations WHERE status = 'running';
DELETE FROM invocations WHERE status = 'running';
CREATE INDEX calls_in_flight_of_session ON calls_in_flight (tenant, session) WHERE session IS NOT NULL;
DROP INDEX invocations_running;
DROP INDEX invocations_of_session;
ALTER TABLE invocations DROP COLUMN deadline;
