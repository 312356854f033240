-- Workflows that were applied from files, and the objects that each of them created and takes away again.

CREATE TABLE workflows (
    tenant TEXT NOT NULL REFERENCES tenants (id),
    name TEXT NOT NULL,
    -- As its file states it.
    version TEXT NOT NULL,
    revision INTEGER NOT NULL,
    -- What its file declares that no other object has, as JSON.
    details TEXT NOT NULL,
    created_by TEXT NOT NULL,
    applied_by TEXT NOT NULL,
    applied_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT;
CREATE INDEX workflows_by_creator ON workflows (tenant, created_by);

CREATE TABLE workflow_objects (
    tenant TEXT NOT NULL,
    kind TEXT NOT NULL,
    object TEXT NOT NULL,
    workflow TEXT NOT NULL,
    ownership TEXT NOT NULL,
    PRIMARY KEY (tenant, kind, object)
) STRICT;
CREATE INDEX workflow_objects_by_workflow ON workflow_objects (tenant, workflow);
