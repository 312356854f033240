-- Workflows that were applied from files, and the objects that each of them created and takes away again.

CREATE TABLE workflows (
    tenant TEXT COLLATE "C" NOT NULL REFERENCES tenants (id),
    name TEXT COLLATE "C" NOT NULL,
    -- As its file states it.
    version TEXT COLLATE "C" NOT NULL,
    revision BIGINT NOT NULL,
    -- What its file declares that no other object has, as JSON.
    details TEXT COLLATE "C" NOT NULL,
    created_by TEXT COLLATE "C" NOT NULL,
    applied_by TEXT COLLATE "C" NOT NULL,
    applied_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, name)
);
CREATE INDEX workflows_by_creator ON workflows (tenant, created_by);

CREATE TABLE workflow_objects (
    tenant TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    object TEXT COLLATE "C" NOT NULL,
    workflow TEXT COLLATE "C" NOT NULL,
    ownership TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, kind, object)
);
CREATE INDEX workflow_objects_by_workflow ON workflow_objects (tenant, workflow);
