-- Mounted MCP servers: what is known of each, what a person has accepted of it and what it offers now. The registry has
-- what can be used.

CREATE TABLE mounts (
    tenant TEXT NOT NULL REFERENCES tenants (id),
    name TEXT NOT NULL,
    -- The endpoint; NULL for a process that the operator has configured.
    url TEXT,
    trusted INTEGER NOT NULL,
    hidden_characters TEXT NOT NULL,
    credential TEXT,
    era TEXT NOT NULL,
    -- What the server says about itself: as it was accepted, and as it was seen last.
    pinned TEXT,
    seen TEXT NOT NULL,
    checked_at INTEGER NOT NULL,
    failure TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT;
CREATE INDEX mounts_by_check ON mounts (checked_at);

CREATE TABLE mount_tools (
    tenant TEXT NOT NULL,
    mount TEXT NOT NULL,
    -- Its name at the server.
    upstream TEXT NOT NULL,
    tool TEXT NOT NULL,
    state TEXT NOT NULL,
    -- The definition that was accepted last, and the one that is listed. One that is too large is known by its hash alone.
    pinned TEXT,
    pinned_hash TEXT,
    seen TEXT,
    seen_hash TEXT,
    PRIMARY KEY (tenant, mount, upstream)
) STRICT;
