-- How many tool sessions a principal has open.
CREATE INDEX tool_sessions_of_principal ON tool_sessions (tenant, principal);
