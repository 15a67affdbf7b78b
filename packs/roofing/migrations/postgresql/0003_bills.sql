-- Counts the changes to a job's bills: of two who bill a job at once, one sees that the other was first.
ALTER TABLE jobs ADD COLUMN bills_version bigint NOT NULL DEFAULT 0 CHECK (bills_version >= 0);

-- Supabase's interface keeps its own picture of the schema and looks again when told.
NOTIFY pgrst, 'reload schema';

INSERT INTO roofing_migrations (name) VALUES ('0003_bills');
