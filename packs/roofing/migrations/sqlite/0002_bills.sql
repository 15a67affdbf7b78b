-- Counts the changes to a job's bills: of two who bill a job at once, one sees that the other was first.
ALTER TABLE jobs ADD COLUMN bills_version INTEGER NOT NULL DEFAULT 0 CHECK (bills_version >= 0);
