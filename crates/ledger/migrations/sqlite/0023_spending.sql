-- Spending: how many calls an account has made and what they cost, for policies and for budgets. An account is the day of an
-- agent (`agent/ID`) or of the tenant (`tenant`), a total (`total/agent/ID`, `total/tenant`), a run (`run/OWNER/RUN`) or a
-- coordinator (`coordinator/ID`).
CREATE TABLE spending (
    tenant TEXT NOT NULL,
    account TEXT NOT NULL,
    -- When the day began; zero for an account that has no end.
    day INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    -- In millionths of a dollar.
    cost INTEGER NOT NULL,
    -- Which events were recorded in this period: 1 for the warning, 2 for the end of the budget.
    noted INTEGER NOT NULL DEFAULT 0,
    -- When it began to count.
    since INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, account)
) STRICT, WITHOUT ROWID;
CREATE INDEX spending_by_age ON spending (changed_at);
INSERT INTO spending (tenant, account, day, calls, cost, since, changed_at)
    SELECT tenant, CASE WHEN run = '' THEN 'agent/' || agent ELSE 'run/' || owner || '/' || run END, day, calls, cost,
        changed_at, changed_at
    FROM call_counts;
DROP TABLE call_counts;
-- The accounts in which a call is counted, one line each with its day, so that a call that is cut off is taken back.
ALTER TABLE calls_in_flight ADD COLUMN accounts TEXT;
-- What the recorded cost is based on; null for the estimate of a tool whose service states no cost.
ALTER TABLE calls_in_flight ADD COLUMN cost_basis TEXT;
ALTER TABLE invocations ADD COLUMN cost_basis TEXT;
-- The budget of a tenant, and who has stopped its calls and those of all tenants. JSON.
ALTER TABLE tenants ADD COLUMN budget TEXT;
ALTER TABLE tenants ADD COLUMN stopped TEXT;
ALTER TABLE tenants ADD COLUMN gate_stopped TEXT;
-- Counts the changes of budget and stops of a tenant.
ALTER TABLE registries ADD COLUMN limits INTEGER NOT NULL DEFAULT 0;
