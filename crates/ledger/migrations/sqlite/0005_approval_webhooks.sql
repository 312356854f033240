-- How far the webhook was told of each tenant's approvals, and the one-time links in what it was told.

CREATE TABLE approval_webhook_positions (
    tenant TEXT NOT NULL PRIMARY KEY,
    -- How many events of the log are dealt with.
    position INTEGER NOT NULL,
    -- The process that tells it just now, and until when nobody else does.
    leased_by TEXT,
    leased_until INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE approval_links (
    -- SHA-256 of the token, which is kept nowhere.
    token_hash BLOB NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL,
    approval TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    used_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX approval_links_by_end ON approval_links (expires_at);
