-- Three roles for Podium's database, each with no more than its work needs. Run it once in that database, as whoever
-- administers it, before the first `podium db migrate`; running it again does no harm, and mends what was changed by hand:
--
--   psql --single-transaction -v ON_ERROR_STOP=1 -d podium -f roles.sql
--
--   podium_owner    owns the schemas and what is in them; only `podium db migrate` works as it
--   podium_worker   reads and writes rows; cannot create, alter, drop or truncate anything
--   podium_viewer   reads
--
-- No passwords stand here: give each role one with psql's \password, or have it come with a certificate.

DO $$
DECLARE
  role text;
BEGIN
  FOREACH role IN ARRAY ARRAY['podium_owner', 'podium_worker', 'podium_viewer'] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
      EXECUTE format('CREATE ROLE %I LOGIN', role);
    END IF;
  END LOOP;
  -- Whoever is no superuser may hand things to a role only as one of its members.
  IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
    EXECUTE format('GRANT podium_owner TO %I', current_user);
  END IF;
  -- PUBLIC may connect to, and make temporary tables in, every database unless told otherwise.
  EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
  EXECUTE format('GRANT CONNECT ON DATABASE %I TO podium_owner, podium_worker, podium_viewer', current_database());
END
$$;

REVOKE ALL ON SCHEMA public FROM PUBLIC;

-- `podium` holds Podium's own tables, `dbos` those of the engine that hands runs to workers.
CREATE SCHEMA IF NOT EXISTS podium AUTHORIZATION podium_owner;
CREATE SCHEMA IF NOT EXISTS dbos AUTHORIZATION podium_owner;
REVOKE ALL ON SCHEMA podium, dbos FROM PUBLIC, podium_worker, podium_viewer;
GRANT USAGE ON SCHEMA podium, dbos TO podium_worker, podium_viewer;

-- What is there already.
REVOKE ALL ON ALL TABLES IN SCHEMA podium, dbos FROM PUBLIC, podium_worker, podium_viewer;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA podium, dbos FROM PUBLIC, podium_worker, podium_viewer;
REVOKE ALL ON ALL ROUTINES IN SCHEMA podium, dbos FROM PUBLIC, podium_worker, podium_viewer;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA podium, dbos TO podium_worker;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA podium, dbos TO podium_worker;
GRANT EXECUTE ON ALL ROUTINES IN SCHEMA podium, dbos TO podium_worker;
GRANT SELECT ON ALL TABLES IN SCHEMA podium, dbos TO podium_viewer;

-- What later migrations will make.
ALTER DEFAULT PRIVILEGES FOR ROLE podium_owner IN SCHEMA podium, dbos
  GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO podium_worker;
ALTER DEFAULT PRIVILEGES FOR ROLE podium_owner IN SCHEMA podium, dbos
  GRANT USAGE ON SEQUENCES TO podium_worker;
ALTER DEFAULT PRIVILEGES FOR ROLE podium_owner IN SCHEMA podium, dbos
  GRANT EXECUTE ON ROUTINES TO podium_worker;
ALTER DEFAULT PRIVILEGES FOR ROLE podium_owner IN SCHEMA podium, dbos
  GRANT SELECT ON TABLES TO podium_viewer;
-- Not for one schema alone: PostgreSQL hands EXECUTE to PUBLIC for all of them.
ALTER DEFAULT PRIVILEGES FOR ROLE podium_owner REVOKE EXECUTE ON ROUTINES FROM PUBLIC;
