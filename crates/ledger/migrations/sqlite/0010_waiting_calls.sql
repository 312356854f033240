-- The grant that a call would go through: those that wait count against its rate.
ALTER TABLE approvals ADD COLUMN grant_id TEXT;
CREATE INDEX approvals_pending_of_grant ON approvals (tenant, grant_id) WHERE status = 'pending' AND grant_id IS NOT NULL;
