-- Calls that are admitted and not settled, with the columns of `invocations`: what becomes of a call is then written once, into
-- `invocations`. A row with status `denied` keeps an admission out that arrives after its caller has given up; nothing reads
-- it, and it is deleted when its deadline is past.
CREATE TABLE calls_in_flight (
    tenant TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    grant_id TEXT COLLATE "C",
    agent TEXT COLLATE "C" NOT NULL,
    actor TEXT COLLATE "C" NOT NULL,
    service TEXT COLLATE "C",
    tool TEXT COLLATE "C" NOT NULL,
    version TEXT COLLATE "C",
    status TEXT COLLATE "C" NOT NULL,
    error_code TEXT COLLATE "C",
    error_reason TEXT COLLATE "C",
    parameters TEXT COLLATE "C" NOT NULL,
    arguments_hash TEXT COLLATE "C" NOT NULL,
    fingerprint TEXT COLLATE "C",
    http_status BIGINT,
    cost BIGINT,
    duration_ms BIGINT,
    idempotency_key TEXT COLLATE "C",
    intent TEXT COLLATE "C",
    plan TEXT COLLATE "C",
    task TEXT COLLATE "C",
    reported BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    run TEXT COLLATE "C",
    by_agent BIGINT NOT NULL,
    transport TEXT COLLATE "C" NOT NULL,
    session TEXT COLLATE "C",
    -- When a running call is taken for cut off.
    deadline BIGINT NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
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
-- Nothing is changed any more once it is written.
ALTER TABLE invocations RESET (fillfactor);
