-- Events are stored by the batch: one row for what one transaction records of a tenant, with one entry in one index. Each
-- event is two lines, its heading and its canonical JSON (see `event_batch.rs`); later batches are compressed.
CREATE TABLE event_batches (
    position INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    -- The place of its first event in the log of the tenant.
    first INTEGER NOT NULL,
    size INTEGER NOT NULL,
    events BLOB NOT NULL
) STRICT;
INSERT INTO event_batches (position, tenant, first, size, events)
    SELECT position, tenant, sequence, 1,
        CAST(json_array(json_array(actor, agent, intent, kind, run, task, tool), time) || char(10) || canonical AS BLOB)
    FROM events ORDER BY position;
CREATE UNIQUE INDEX event_batches_in_order ON event_batches (tenant, first);
DROP TABLE events;
