-- Refused calls beyond those that are recorded one by one, until they are summed up in an event.
CREATE TABLE denial_counts (
    tenant TEXT COLLATE "C" NOT NULL,
    principal TEXT COLLATE "C" NOT NULL,
    code TEXT COLLATE "C" NOT NULL,
    count BIGINT NOT NULL,
    first_at BIGINT NOT NULL,
    last_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, principal, code)
);
