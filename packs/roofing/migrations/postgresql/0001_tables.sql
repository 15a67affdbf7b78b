-- The roofing business's records on PostgreSQL. Money is in cents.
--
-- On Supabase run the files of this folder in order, each whole, in the project's SQL editor; on a
-- server of your own Podium applies them by itself. Each is one transaction: it is done or it is not.

CREATE TABLE IF NOT EXISTS roofing_migrations (
    name       text PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE leads (
    id               text PRIMARY KEY,
    name             text NOT NULL CHECK (name <> ''),
    phone            text,
    email            text,
    address          text,
    suburb           text,
    postcode         text,
    source           text NOT NULL DEFAULT 'phone'
                     CHECK (source IN ('phone', 'web', 'referral', 'walk_in', 'social')),
    stage            text NOT NULL DEFAULT 'new'
                     CHECK (stage IN ('new', 'contacted', 'inspection', 'quoted', 'won', 'lost', 'archived')),
    stage_before     text,
    assignee         text,
    notes            text,
    archived_because text,
    created_at       timestamptz NOT NULL,
    updated_at       timestamptz NOT NULL
);
CREATE INDEX leads_by_stage ON leads (stage, created_at);
CREATE INDEX leads_by_phone ON leads (phone);
CREATE INDEX leads_by_email ON leads (email);
CREATE INDEX leads_by_suburb ON leads (suburb);

CREATE TABLE inspections (
    id                text PRIMARY KEY,
    lead_id           text NOT NULL REFERENCES leads (id),
    site_address      text,
    scheduled_on      date,
    scheduled_time    text,
    inspected_on      date,
    inspector         text,
    roof_type         text CHECK (roof_type IN ('tile', 'metal', 'slate', 'flat')),
    notes             text,
    status            text NOT NULL DEFAULT 'open'
                      CHECK (status IN ('scheduled', 'open', 'submitted', 'cancelled')),
    status_before     text,
    cancelled_because text,
    scope_summary     text,
    scope_version     bigint NOT NULL DEFAULT 0 CHECK (scope_version >= 0),
    submitted_at      timestamptz,
    created_at        timestamptz NOT NULL,
    updated_at        timestamptz NOT NULL
);
CREATE INDEX inspections_by_lead ON inspections (lead_id);
CREATE INDEX inspections_by_status ON inspections (status, created_at);

CREATE TABLE inspection_items (
    id            text PRIMARY KEY,
    inspection_id text NOT NULL REFERENCES inspections (id),
    kind          text NOT NULL CHECK (kind IN ('measurement', 'defect')),
    label         text NOT NULL CHECK (label <> ''),
    value         double precision,
    unit          text,
    severity      text CHECK (severity IN ('low', 'medium', 'high', 'critical')),
    notes         text,
    asset_ids     jsonb NOT NULL DEFAULT '[]',
    position      bigint NOT NULL DEFAULT 0,
    created_at    timestamptz NOT NULL,
    updated_at    timestamptz NOT NULL
);
CREATE INDEX inspection_items_by_inspection ON inspection_items (inspection_id, position);

CREATE TABLE media_assets (
    id            text PRIMARY KEY,
    inspection_id text REFERENCES inspections (id),
    file_name     text NOT NULL CHECK (file_name <> ''),
    caption       text,
    media_type    text NOT NULL,
    bytes         bigint NOT NULL CHECK (bytes >= 0),
    sha256        text NOT NULL CHECK (length(sha256) = 64),
    stored_as     text NOT NULL,
    taken_at      timestamptz,
    status        text NOT NULL DEFAULT 'stored' CHECK (status IN ('stored', 'removed')),
    created_at    timestamptz NOT NULL,
    updated_at    timestamptz NOT NULL
);
CREATE INDEX media_assets_by_inspection ON media_assets (inspection_id);
CREATE INDEX media_assets_by_content ON media_assets (sha256);

CREATE TABLE quotes (
    id               text PRIMARY KEY,
    lead_id          text NOT NULL REFERENCES leads (id),
    inspection_id    text REFERENCES inspections (id),
    title            text,
    status           text NOT NULL DEFAULT 'draft'
                     CHECK (status IN ('draft', 'final', 'accepted', 'declined')),
    status_before    text,
    total_cents      bigint NOT NULL DEFAULT 0 CHECK (total_cents >= 0),
    declined_because text,
    finalized_at     timestamptz,
    accepted_at      timestamptz,
    created_at       timestamptz NOT NULL,
    updated_at       timestamptz NOT NULL
);
CREATE INDEX quotes_by_lead ON quotes (lead_id);
CREATE INDEX quotes_by_status ON quotes (status, created_at);

CREATE TABLE quote_lines (
    id               text PRIMARY KEY,
    quote_id         text NOT NULL REFERENCES quotes (id),
    description      text NOT NULL CHECK (description <> ''),
    quantity         double precision NOT NULL DEFAULT 1 CHECK (quantity > 0),
    unit_price_cents bigint NOT NULL CHECK (unit_price_cents >= 0),
    total_cents      bigint NOT NULL CHECK (total_cents >= 0),
    position         bigint NOT NULL DEFAULT 0,
    created_at       timestamptz NOT NULL,
    updated_at       timestamptz NOT NULL
);
CREATE INDEX quote_lines_by_quote ON quote_lines (quote_id, position);

CREATE TABLE tasks (
    id           text PRIMARY KEY,
    title        text NOT NULL CHECK (title <> ''),
    due          date,
    assignee     text,
    lead_id      text REFERENCES leads (id),
    status       text NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'done', 'cancelled')),
    completed_at timestamptz,
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL
);
CREATE INDEX tasks_by_status ON tasks (status, due);
CREATE INDEX tasks_by_lead ON tasks (lead_id);

CREATE TABLE notes (
    id         text PRIMARY KEY,
    text       text NOT NULL CHECK (text <> ''),
    lead_id    text REFERENCES leads (id),
    removed_at timestamptz,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);
CREATE INDEX notes_by_lead ON notes (lead_id);

CREATE TABLE jobs (
    id                text PRIMARY KEY,
    quote_id          text NOT NULL REFERENCES quotes (id),
    lead_id           text NOT NULL REFERENCES leads (id),
    start_on          date,
    scheduled_on      date,
    crew              text,
    status            text NOT NULL DEFAULT 'created'
                      CHECK (status IN ('created', 'scheduled', 'started', 'completed', 'cancelled')),
    status_before     text,
    cancelled_because text,
    started_at        timestamptz,
    completed_at      timestamptz,
    created_at        timestamptz NOT NULL,
    updated_at        timestamptz NOT NULL
);
-- Two people who accept one quote at once still get one job.
CREATE UNIQUE INDEX jobs_one_for_a_quote ON jobs (quote_id) WHERE status <> 'cancelled';
CREATE INDEX jobs_by_lead ON jobs (lead_id);
CREATE INDEX jobs_by_status ON jobs (status, created_at);

CREATE TABLE invoices (
    id             text PRIMARY KEY,
    job_id         text NOT NULL REFERENCES jobs (id),
    lead_id        text NOT NULL REFERENCES leads (id),
    amount_cents   bigint NOT NULL CHECK (amount_cents > 0),
    paid_cents     bigint NOT NULL DEFAULT 0,
    due            date,
    status         text NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'paid', 'void')),
    status_before  text,
    voided_because text,
    created_at     timestamptz NOT NULL,
    updated_at     timestamptz NOT NULL,
    CHECK (paid_cents BETWEEN 0 AND amount_cents)
);
CREATE INDEX invoices_by_job ON invoices (job_id);
CREATE INDEX invoices_by_status ON invoices (status, due);

CREATE TABLE payments (
    id           text PRIMARY KEY,
    invoice_id   text NOT NULL REFERENCES invoices (id),
    amount_cents bigint NOT NULL CHECK (amount_cents > 0),
    method       text NOT NULL DEFAULT 'bank' CHECK (method IN ('card', 'bank', 'cash', 'cheque')),
    reference    text,
    status       text NOT NULL DEFAULT 'received' CHECK (status IN ('received', 'reversed')),
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL
);
CREATE INDEX payments_by_invoice ON payments (invoice_id);
CREATE INDEX payments_by_time ON payments (created_at);

CREATE TABLE messages (
    id          text PRIMARY KEY,
    channel     text NOT NULL CHECK (channel IN ('sms', 'email')),
    purpose     text NOT NULL DEFAULT 'message'
                CHECK (purpose IN ('message', 'quote', 'invoice', 'review')),
    recipient   text NOT NULL CHECK (recipient <> ''),
    subject     text,
    body        text NOT NULL,
    lead_id     text REFERENCES leads (id),
    quote_id    text REFERENCES quotes (id),
    invoice_id  text REFERENCES invoices (id),
    job_id      text REFERENCES jobs (id),
    status      text NOT NULL DEFAULT 'sending'
                CHECK (status IN ('sending', 'sent', 'failed', 'unknown')),
    provider_id text,
    error       text,
    sent_at     timestamptz,
    created_at  timestamptz NOT NULL,
    updated_at  timestamptz NOT NULL
);
CREATE INDEX messages_by_lead ON messages (lead_id);
CREATE INDEX messages_by_time ON messages (created_at);

CREATE TABLE snapshots (
    id         text PRIMARY KEY,
    label      text,
    file_name  text NOT NULL,
    sha256     text NOT NULL CHECK (length(sha256) = 64),
    bytes      bigint NOT NULL CHECK (bytes >= 0),
    status     text NOT NULL DEFAULT 'kept' CHECK (status IN ('kept', 'removed')),
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);

-- What each call did, written together with it: a repetition finds its result here.
CREATE TABLE performed (
    key        text PRIMARY KEY,
    tool       text NOT NULL,
    result     jsonb NOT NULL,
    created_at timestamptz NOT NULL
);
CREATE INDEX performed_by_time ON performed (created_at);

-- Supabase serves every table of this schema to the web: without policies only its service key
-- and the tables' owner get in.
ALTER TABLE roofing_migrations ENABLE ROW LEVEL SECURITY;
ALTER TABLE leads ENABLE ROW LEVEL SECURITY;
ALTER TABLE inspections ENABLE ROW LEVEL SECURITY;
ALTER TABLE inspection_items ENABLE ROW LEVEL SECURITY;
ALTER TABLE media_assets ENABLE ROW LEVEL SECURITY;
ALTER TABLE quotes ENABLE ROW LEVEL SECURITY;
ALTER TABLE quote_lines ENABLE ROW LEVEL SECURITY;
ALTER TABLE tasks ENABLE ROW LEVEL SECURITY;
ALTER TABLE notes ENABLE ROW LEVEL SECURITY;
ALTER TABLE jobs ENABLE ROW LEVEL SECURITY;
ALTER TABLE invoices ENABLE ROW LEVEL SECURITY;
ALTER TABLE payments ENABLE ROW LEVEL SECURITY;
ALTER TABLE messages ENABLE ROW LEVEL SECURITY;
ALTER TABLE snapshots ENABLE ROW LEVEL SECURITY;
ALTER TABLE performed ENABLE ROW LEVEL SECURITY;

INSERT INTO roofing_migrations (name) VALUES ('0001_tables');
