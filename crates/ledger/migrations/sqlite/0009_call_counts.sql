-- How much agents have called and spent, where policies look at it: by agent for a day, or by the owner of a run for all of
-- it. What does not apply is empty.
CREATE TABLE call_counts (
    tenant TEXT NOT NULL,
    agent TEXT NOT NULL,
    owner TEXT NOT NULL,
    run TEXT NOT NULL,
    -- When the day began; zero for a run.
    day INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    cost INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, agent, owner, run)
) STRICT, WITHOUT ROWID;
CREATE INDEX call_counts_by_age ON call_counts (changed_at);
