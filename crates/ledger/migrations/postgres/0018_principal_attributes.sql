-- The attributes of a principal as one JSON document: a new one needs no column. Texts are joined rather than parsed, so
-- that a row that is damaged stays the only one that cannot be read.
ALTER TABLE principals ADD COLUMN attributes TEXT COLLATE "C" NOT NULL DEFAULT '{}';
UPDATE principals SET attributes = '{"name":' || coalesce(to_json(name)::text, 'null') || ',"scopes":' || scopes || ',"permissions":' || permissions
    || ',"rate_limits":' || rate_limits || ',"tool_allowlist":' || coalesce(tool_allowlist, 'null') || ',"labels":' || labels
    || ',"detach_calls":' || CASE detaches WHEN 0 THEN 'false' ELSE 'true' END || '}';
ALTER TABLE principals DROP COLUMN name;
ALTER TABLE principals DROP COLUMN scopes;
ALTER TABLE principals DROP COLUMN permissions;
ALTER TABLE principals DROP COLUMN rate_limits;
ALTER TABLE principals DROP COLUMN tool_allowlist;
ALTER TABLE principals DROP COLUMN labels;
ALTER TABLE principals DROP COLUMN detaches;
