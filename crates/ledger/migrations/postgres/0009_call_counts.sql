-- How much agents have called and spent, where policies look at it: by agent for a day, or by the owner of a run for all of
-- it. What does not apply is empty.
CREATE TABLE call_counts (
    tenant TEXT NOT NULL,
    agent TEXT NOT NULL,
    owner TEXT NOT NULL,
    run TEXT NOT NULL,
    -- When the day began; zero for a run.
    day BIGINT NOT NULL,
    calls BIGINT NOT NULL,
    cost BIGINT NOT NULL,
    changed_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, agent, owner, run)
);
CREATE INDEX call_counts_by_age ON call_counts (changed_at);
