-- An id begins with the time of its call, so that calls between two times are found by their ids. Only calls whose clock
-- had stepped back have an earlier time than their id, and only they need an index by time.
ALTER TABLE invocations ADD COLUMN out_of_order INTEGER;
ALTER TABLE calls_in_flight ADD COLUMN out_of_order INTEGER;
UPDATE invocations SET out_of_order = 1 WHERE created_at <>
    ((instr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(id, 5, 1)) - 1) << 45)
    + ((instr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(id, 6, 1)) - 1) << 40)
    + ((instr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(id, 7, 1)) - 1) << 35)
    + ((instr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(id, 8, 1)) - 1) << 30)
    + ((instr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(id, 9, 1)) - 1) << 25)
    + ((instr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(id, 10, 1)) - 1) << 20)
    + ((instr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(id, 11, 1)) - 1) << 15)
    + ((instr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(id, 12, 1)) - 1) << 10)
    + ((instr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(id, 13, 1)) - 1) << 5)
    + ((instr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(id, 14, 1)) - 1) << 0);
UPDATE calls_in_flight SET out_of_order = 1 WHERE created_at <>
    ((instr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(id, 5, 1)) - 1) << 45)
    + ((instr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(id, 6, 1)) - 1) << 40)
    + ((instr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(id, 7, 1)) - 1) << 35)
    + ((instr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(id, 8, 1)) - 1) << 30)
    + ((instr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(id, 9, 1)) - 1) << 25)
    + ((instr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(id, 10, 1)) - 1) << 20)
    + ((instr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(id, 11, 1)) - 1) << 15)
    + ((instr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(id, 12, 1)) - 1) << 10)
    + ((instr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(id, 13, 1)) - 1) << 5)
    + ((instr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(id, 14, 1)) - 1) << 0);
CREATE INDEX invocations_out_of_order ON invocations (tenant, created_at, id) WHERE out_of_order IS NOT NULL;
DROP INDEX invocations_by_time;
DROP INDEX invocations_of_agent_by_time;
