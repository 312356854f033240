-- Events are stored by the batch: one row for what one transaction records of a tenant. Each event is two lines, its heading
-- and its canonical JSON (see `event_batch.rs`); later batches are compressed.
CREATE TABLE event_batches (
    position BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant TEXT COLLATE "C" NOT NULL,
    -- The place of its first event in the log of the tenant, given when it is integrated; nothing else ever changes.
    first BIGINT,
    size BIGINT NOT NULL,
    events BYTEA NOT NULL
) WITH (toast_tuple_target = 128, fillfactor = 80);
-- Stored beside the row, and not compressed a second time: giving a batch its place does not write its events again.
ALTER TABLE event_batches ALTER COLUMN events SET STORAGE EXTERNAL;
INSERT INTO event_batches (tenant, first, size, events)
    SELECT tenant, sequence, 1,
        convert_to(json_build_array(json_build_array(actor, agent, intent, kind, run, task, tool), time)::text || chr(10)
            || canonical, 'UTF8')
    FROM events ORDER BY position;
CREATE UNIQUE INDEX event_batches_in_order ON event_batches (tenant, first) WHERE first IS NOT NULL;
CREATE INDEX event_batches_to_integrate ON event_batches (tenant, position) WHERE first IS NULL;
DROP TABLE events;
