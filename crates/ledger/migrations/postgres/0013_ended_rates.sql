-- The rings of grants that have ended, whose count is negative, are deleted some places at a time.
CREATE INDEX rates_of_ended ON rates (grant_id) WHERE taken < 0;
