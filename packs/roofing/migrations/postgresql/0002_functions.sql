-- Changes go through one function, so that a call over Supabase's REST interface is one transaction
-- as well: all of its changes and the record of it, or nothing.

-- Makes the changes and records the result under the key; gives the recorded result when the key was
-- there before. Each change: {"act", "table", "id", "values": {…}, "expecting": {column: [values]}}.
-- What does not fit raises PT409, which PostgREST answers as HTTP 409; the detail is JSON.
CREATE FUNCTION roofing_apply(
    p_key text, p_tool text, p_now timestamptz, p_changes jsonb, p_result jsonb
) RETURNS jsonb
LANGUAGE plpgsql
SECURITY INVOKER
SET search_path FROM CURRENT
AS $$
DECLARE
    changeable CONSTANT text[] := ARRAY[
        'leads', 'inspections', 'inspection_items', 'media_assets', 'quotes', 'quote_lines', 'tasks',
        'notes', 'jobs', 'invoices', 'payments', 'messages', 'snapshots'
    ];
    change jsonb;
    target text;
    row_id text;
    named text;
    current_row jsonb;
    expected record;
    fits boolean;
BEGIN
    -- A second call with this key waits here until the first has committed or given up.
    INSERT INTO performed (key, tool, result, created_at)
    VALUES (p_key, p_tool, p_result, p_now)
    ON CONFLICT (key) DO NOTHING;
    IF NOT FOUND THEN
        RETURN (SELECT result FROM performed WHERE key = p_key);
    END IF;

    FOR change IN SELECT * FROM jsonb_array_elements(p_changes) LOOP
        target := change->>'table';
        row_id := change->>'id';
        IF NOT coalesce(target = ANY (changeable), false) THEN
            RAISE EXCEPTION 'table % cannot be changed', quote_nullable(target) USING ERRCODE = 'PT400';
        END IF;
        SELECT string_agg(format('%I', name), ', ' ORDER BY name) INTO named
        FROM jsonb_object_keys(change->'values') AS name;

        IF change->>'act' = 'insert' THEN
            EXECUTE format(
                'INSERT INTO %1$I (%2$s) SELECT %2$s FROM jsonb_populate_record(NULL::%1$I, $1)',
                target, named
            ) USING change->'values';
            CONTINUE;
        END IF;

        EXECUTE format('SELECT to_jsonb(t) FROM %I t WHERE id = $1 FOR UPDATE', target)
        INTO current_row USING row_id;
        IF current_row IS NULL THEN
            RAISE EXCEPTION 'there is no such row' USING ERRCODE = 'PT409',
                DETAIL = jsonb_build_object('table', target, 'id', row_id)::text;
        END IF;
        FOR expected IN SELECT key, value FROM jsonb_each(change->'expecting') LOOP
            -- Compared as the column's own type: JSON writes one moment in several ways.
            EXECUTE format(
                'SELECT coalesce(bool_or(t.%1$I IS NOT DISTINCT FROM e.%1$I), false)'
                ' FROM %2$I t, jsonb_array_elements($2) v,'
                ' LATERAL jsonb_populate_record(NULL::%2$I, jsonb_build_object($3::text, v)) e'
                ' WHERE t.id = $1',
                expected.key, target
            ) INTO fits USING row_id, expected.value, expected.key;
            IF NOT fits THEN
                RAISE EXCEPTION 'the row is not as expected' USING ERRCODE = 'PT409',
                    DETAIL = jsonb_build_object(
                        'table', target, 'id', row_id, 'column', expected.key,
                        'found', current_row->expected.key, 'expected', expected.value
                    )::text;
            END IF;
        END LOOP;

        IF change->>'act' = 'update' THEN
            EXECUTE format(
                'UPDATE %1$I SET (%2$s) = (SELECT %2$s FROM jsonb_populate_record(NULL::%1$I, $1))'
                ' WHERE id = $2',
                target, named
            ) USING change->'values', row_id;
        ELSIF change->>'act' = 'delete' THEN
            EXECUTE format('DELETE FROM %I WHERE id = $1', target) USING row_id;
        ELSE
            RAISE EXCEPTION 'no such act: %', quote_nullable(change->>'act') USING ERRCODE = 'PT400';
        END IF;
    END LOOP;
    RETURN p_result;
END;
$$;

-- All tables in one statement, and so as of one moment.
CREATE FUNCTION roofing_export() RETURNS jsonb
LANGUAGE sql
STABLE
SECURITY INVOKER
SET search_path FROM CURRENT
AS $$
    SELECT jsonb_build_object(
        'roofing_migrations', (SELECT coalesce(jsonb_agg(to_jsonb(t) ORDER BY t.name), '[]') FROM roofing_migrations t),
        'leads', (SELECT coalesce(jsonb_agg(to_jsonb(t) ORDER BY t.id), '[]') FROM leads t),
        'inspections', (SELECT coalesce(jsonb_agg(to_jsonb(t) ORDER BY t.id), '[]') FROM inspections t),
        'inspection_items', (SELECT coalesce(jsonb_agg(to_jsonb(t) ORDER BY t.id), '[]') FROM inspection_items t),
        'media_assets', (SELECT coalesce(jsonb_agg(to_jsonb(t) ORDER BY t.id), '[]') FROM media_assets t),
        'quotes', (SELECT coalesce(jsonb_agg(to_jsonb(t) ORDER BY t.id), '[]') FROM quotes t),
        'quote_lines', (SELECT coalesce(jsonb_agg(to_jsonb(t) ORDER BY t.id), '[]') FROM quote_lines t),
        'tasks', (SELECT coalesce(jsonb_agg(to_jsonb(t) ORDER BY t.id), '[]') FROM tasks t),
        'notes', (SELECT coalesce(jsonb_agg(to_jsonb(t) ORDER BY t.id), '[]') FROM notes t),
        'jobs', (SELECT coalesce(jsonb_agg(to_jsonb(t) ORDER BY t.id), '[]') FROM jobs t),
        'invoices', (SELECT coalesce(jsonb_agg(to_jsonb(t) ORDER BY t.id), '[]') FROM invoices t),
        'payments', (SELECT coalesce(jsonb_agg(to_jsonb(t) ORDER BY t.id), '[]') FROM payments t),
        'messages', (SELECT coalesce(jsonb_agg(to_jsonb(t) ORDER BY t.id), '[]') FROM messages t),
        'snapshots', (SELECT coalesce(jsonb_agg(to_jsonb(t) ORDER BY t.id), '[]') FROM snapshots t),
        'performed', (SELECT coalesce(jsonb_agg(to_jsonb(t) ORDER BY t.key), '[]') FROM performed t)
    );
$$;

-- Everybody may execute a new function unless told otherwise, and Supabase serves them all to the web.
REVOKE ALL ON FUNCTION roofing_apply(text, text, timestamptz, jsonb, jsonb) FROM PUBLIC;
REVOKE ALL ON FUNCTION roofing_export() FROM PUBLIC;
DO $$
DECLARE
    web_role text;
BEGIN
    FOR web_role IN SELECT rolname FROM pg_roles WHERE rolname IN ('anon', 'authenticated') LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION roofing_apply(text, text, timestamptz, jsonb, jsonb) FROM %I', web_role);
        EXECUTE format('REVOKE ALL ON FUNCTION roofing_export() FROM %I', web_role);
    END LOOP;
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'service_role') THEN
        GRANT EXECUTE ON FUNCTION roofing_apply(text, text, timestamptz, jsonb, jsonb) TO service_role;
        GRANT EXECUTE ON FUNCTION roofing_export() TO service_role;
    END IF;
END;
$$;

-- Supabase's interface keeps its own picture of the schema and looks again when told.
NOTIFY pgrst, 'reload schema';

INSERT INTO roofing_migrations (name) VALUES ('0002_functions');
