-- For each thing that events are looked for by, the pages of 64 places of the log that have any such event. Written when
-- events are taken into the tree: what is written with each call has fewer indexes for it.
CREATE TABLE event_pages (
    tenant TEXT NOT NULL,
    field TEXT NOT NULL,
    value TEXT NOT NULL,
    page INTEGER NOT NULL,
    PRIMARY KEY (tenant, field, value, page)
) STRICT, WITHOUT ROWID;
INSERT INTO event_pages (tenant, field, value, page)
    WITH logged AS (
        SELECT events.*, events.sequence / 64 AS page FROM events JOIN heads ON heads.tenant = events.tenant
        WHERE events.sequence < heads.size
    )
    SELECT tenant, 'actor', actor, page FROM logged
    UNION SELECT tenant, 'agent', agent, page FROM logged WHERE agent IS NOT NULL
    UNION SELECT tenant, 'intent', intent, page FROM logged WHERE intent IS NOT NULL
    UNION SELECT tenant, 'kind', kind, page FROM logged WHERE kind <> 'agent.toolCalled' AND kind <> 'tool.invoked'
    UNION SELECT tenant, 'run', run, page FROM logged WHERE run IS NOT NULL
    UNION SELECT tenant, 'task', task, page FROM logged WHERE task IS NOT NULL
    UNION SELECT tenant, 'tool', tool, page FROM logged WHERE tool IS NOT NULL;
DROP INDEX events_of_kind;
DROP INDEX events_of_agent;
DROP INDEX events_of_run;
