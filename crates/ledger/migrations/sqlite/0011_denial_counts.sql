-- Refused calls beyond those that are recorded one by one, until they are summed up in an event.
CREATE TABLE denial_counts (
    tenant TEXT NOT NULL,
    principal TEXT NOT NULL,
    code TEXT NOT NULL,
    count INTEGER NOT NULL,
    first_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, principal, code)
) STRICT;
