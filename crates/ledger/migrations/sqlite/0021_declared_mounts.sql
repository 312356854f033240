-- Whether a mount follows the configuration: it is changed and removed with its entry.
ALTER TABLE mounts ADD COLUMN declared INTEGER NOT NULL DEFAULT 0;
