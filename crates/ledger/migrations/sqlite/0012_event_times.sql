-- The earliest and the latest time of each page of 512 places of the log: times are those of the clock and may step back, so that
-- a page can be out of line with its neighbours.
CREATE TABLE event_times (
    tenant TEXT NOT NULL,
    page INTEGER NOT NULL,
    earliest INTEGER NOT NULL,
    latest INTEGER NOT NULL,
    PRIMARY KEY (tenant, page)
) STRICT, WITHOUT ROWID;
INSERT INTO event_times (tenant, page, earliest, latest)
    SELECT events.tenant, events.sequence / 512, MIN(events.time), MAX(events.time)
    FROM events JOIN heads ON heads.tenant = events.tenant WHERE events.sequence < heads.size
    GROUP BY events.tenant, events.sequence / 512;
-- For lists of calls between two times.
CREATE INDEX invocations_by_time ON invocations (tenant, created_at, id);
CREATE INDEX invocations_of_agent_by_time ON invocations (tenant, agent, created_at, id);
