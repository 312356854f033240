-- What policies and guardians know principals by, the policies themselves, and what calls leave on their conversations.

ALTER TABLE principals ADD COLUMN labels TEXT COLLATE "C" NOT NULL DEFAULT '[]';

-- Nobody can hand out more than they have: who was made an administrator before can do everything still.
UPDATE principals SET permissions = replace(permissions, '"audit.read"', '"audit.read","policies.manage"')
WHERE permissions LIKE '%"agents.act_as"%' AND permissions LIKE '%"agents.manage"%'
    AND permissions LIKE '%"audit.read"%' AND permissions LIKE '%"tools.manage"%';

-- Counts the changes of a tenant's policies: the number of the version that is active. A row for every tenant, so that an
-- admission can hold it while it rests on there being none.
ALTER TABLE registries ADD COLUMN policies BIGINT NOT NULL DEFAULT 0;
INSERT INTO registries (tenant, revision) SELECT id, 0 FROM tenants ON CONFLICT (tenant) DO NOTHING;

CREATE TABLE policy_sets (
    tenant TEXT COLLATE "C" NOT NULL REFERENCES tenants (id),
    version BIGINT NOT NULL,
    files TEXT COLLATE "C" NOT NULL,
    digest TEXT COLLATE "C" NOT NULL,
    note TEXT COLLATE "C",
    applied_by TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, version)
);

-- The session is empty where all that the agent does counts as one.
CREATE TABLE session_marks (
    tenant TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    session TEXT COLLATE "C" NOT NULL,
    label TEXT COLLATE "C" NOT NULL,
    marked_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, agent, session, label)
);
CREATE INDEX session_marks_by_age ON session_marks (marked_at);

-- What an execution has come to so far.
CREATE INDEX invocations_of_run ON invocations (tenant, run, id) WHERE run IS NOT NULL;
