-- Mounted MCP servers: what is known of each, what a person has accepted of it and what it offers now. The registry has
-- what can be used.

CREATE TABLE mounts (
    tenant TEXT COLLATE "C" NOT NULL REFERENCES tenants (id),
    name TEXT COLLATE "C" NOT NULL,
    -- The endpoint; NULL for a process that the operator has configured.
    url TEXT COLLATE "C",
    trusted BIGINT NOT NULL,
    hidden_characters TEXT COLLATE "C" NOT NULL,
    credential TEXT COLLATE "C",
    era TEXT COLLATE "C" NOT NULL,
    -- What the server says about itself: as it was accepted, and as it was seen last.
    pinned TEXT COLLATE "C",
    seen TEXT COLLATE "C" NOT NULL,
    checked_at BIGINT NOT NULL,
    failure TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, name)
);
CREATE INDEX mounts_by_check ON mounts (checked_at);

CREATE TABLE mount_tools (
    tenant TEXT COLLATE "C" NOT NULL,
    mount TEXT COLLATE "C" NOT NULL,
    -- Its name at the server.
    upstream TEXT COLLATE "C" NOT NULL,
    tool TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    -- The definition that was accepted last, and the one that is listed. One that is too large is known by its hash alone.
    pinned TEXT COLLATE "C",
    pinned_hash TEXT COLLATE "C",
    seen TEXT COLLATE "C",
    seen_hash TEXT COLLATE "C",
    PRIMARY KEY (tenant, mount, upstream)
);
