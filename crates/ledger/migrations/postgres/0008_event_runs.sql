-- The pages of 512 places of the log that have any event of a run. Most runs are one call, so that there are as many as calls:
-- by themselves the new ones stand behind all others, where they are written fastest, and pages that are longer hold
-- both events of a call.
CREATE TABLE event_runs (
    tenant TEXT COLLATE "C" NOT NULL,
    run TEXT COLLATE "C" NOT NULL,
    page BIGINT NOT NULL,
    PRIMARY KEY (tenant, run, page)
);
INSERT INTO event_runs (tenant, run, page)
    SELECT DISTINCT tenant, value, page / 8 FROM event_pages WHERE field = 'run' ORDER BY tenant, value, page / 8;
DELETE FROM event_pages WHERE field = 'run';
