-- How far the webhook was told of each tenant's approvals, and the one-time links in what it was told.

CREATE TABLE approval_webhook_positions (
    tenant TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    -- How many events of the log are dealt with.
    position BIGINT NOT NULL,
    -- The process that tells it just now, and until when nobody else does.
    leased_by TEXT COLLATE "C",
    leased_until BIGINT
);

CREATE TABLE approval_links (
    -- SHA-256 of the token, which is kept nowhere.
    token_hash BYTEA NOT NULL PRIMARY KEY,
    tenant TEXT COLLATE "C" NOT NULL,
    approval TEXT COLLATE "C" NOT NULL,
    expires_at BIGINT NOT NULL,
    used_at BIGINT
);
CREATE INDEX approval_links_by_end ON approval_links (expires_at);
