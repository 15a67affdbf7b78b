-- The roofing business's records. Money is in cents; days and moments are ISO text, moments in UTC.

CREATE TABLE leads (
    id               TEXT PRIMARY KEY,
    name             TEXT NOT NULL CHECK (name <> ''),
    phone            TEXT,
    email            TEXT,
    address          TEXT,
    suburb           TEXT,
    postcode         TEXT,
    source           TEXT NOT NULL DEFAULT 'phone'
                     CHECK (source IN ('phone', 'web', 'referral', 'walk_in', 'social')),
    stage            TEXT NOT NULL DEFAULT 'new'
                     CHECK (stage IN ('new', 'contacted', 'inspection', 'quoted', 'won', 'lost', 'archived')),
    stage_before     TEXT,
    assignee         TEXT,
    notes            TEXT,
    archived_because TEXT,
    created_at       TEXT NOT NULL,
    updated_at       TEXT NOT NULL
) STRICT;
CREATE INDEX leads_by_stage ON leads (stage, created_at);
CREATE INDEX leads_by_phone ON leads (phone);
CREATE INDEX leads_by_email ON leads (email);
CREATE INDEX leads_by_suburb ON leads (suburb);

CREATE TABLE inspections (
    id                TEXT PRIMARY KEY,
    lead_id           TEXT NOT NULL REFERENCES leads (id),
    site_address      TEXT,
    scheduled_on      TEXT,
    scheduled_time    TEXT,
    inspected_on      TEXT,
    inspector         TEXT,
    roof_type         TEXT CHECK (roof_type IN ('tile', 'metal', 'slate', 'flat')),
    notes             TEXT,
    status            TEXT NOT NULL DEFAULT 'open'
                      CHECK (status IN ('scheduled', 'open', 'submitted', 'cancelled')),
    status_before     TEXT,
    cancelled_because TEXT,
    scope_summary     TEXT,
    scope_version     INTEGER NOT NULL DEFAULT 0 CHECK (scope_version >= 0),
    submitted_at      TEXT,
    created_at        TEXT NOT NULL,
    updated_at        TEXT NOT NULL
) STRICT;
CREATE INDEX inspections_by_lead ON inspections (lead_id);
CREATE INDEX inspections_by_status ON inspections (status, created_at);

CREATE TABLE inspection_items (
    id            TEXT PRIMARY KEY,
    inspection_id TEXT NOT NULL REFERENCES inspections (id),
    kind          TEXT NOT NULL CHECK (kind IN ('measurement', 'defect')),
    label         TEXT NOT NULL CHECK (label <> ''),
    value         REAL,
    unit          TEXT,
    severity      TEXT CHECK (severity IN ('low', 'medium', 'high', 'critical')),
    notes         TEXT,
    asset_ids     TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(asset_ids)),
    position      INTEGER NOT NULL DEFAULT 0,
    created_at    TEXT NOT NULL,
    updated_at    TEXT NOT NULL
) STRICT;
CREATE INDEX inspection_items_by_inspection ON inspection_items (inspection_id, position);

CREATE TABLE media_assets (
    id            TEXT PRIMARY KEY,
    inspection_id TEXT REFERENCES inspections (id),
    file_name     TEXT NOT NULL CHECK (file_name <> ''),
    caption       TEXT,
    media_type    TEXT NOT NULL,
    bytes         INTEGER NOT NULL CHECK (bytes >= 0),
    sha256        TEXT NOT NULL CHECK (length(sha256) = 64),
    stored_as     TEXT NOT NULL,
    taken_at      TEXT,
    status        TEXT NOT NULL DEFAULT 'stored' CHECK (status IN ('stored', 'removed')),
    created_at    TEXT NOT NULL,
    updated_at    TEXT NOT NULL
) STRICT;
CREATE INDEX media_assets_by_inspection ON media_assets (inspection_id);
CREATE INDEX media_assets_by_content ON media_assets (sha256);

CREATE TABLE quotes (
    id               TEXT PRIMARY KEY,
    lead_id          TEXT NOT NULL REFERENCES leads (id),
    inspection_id    TEXT REFERENCES inspections (id),
    title            TEXT,
    status           TEXT NOT NULL DEFAULT 'draft'
                     CHECK (status IN ('draft', 'final', 'accepted', 'declined')),
    status_before    TEXT,
    total_cents      INTEGER NOT NULL DEFAULT 0 CHECK (total_cents >= 0),
    declined_because TEXT,
    finalized_at     TEXT,
    accepted_at      TEXT,
    created_at       TEXT NOT NULL,
    updated_at       TEXT NOT NULL
) STRICT;
CREATE INDEX quotes_by_lead ON quotes (lead_id);
CREATE INDEX quotes_by_status ON quotes (status, created_at);

CREATE TABLE quote_lines (
    id               TEXT PRIMARY KEY,
    quote_id         TEXT NOT NULL REFERENCES quotes (id),
    description      TEXT NOT NULL CHECK (description <> ''),
    quantity         REAL NOT NULL DEFAULT 1 CHECK (quantity > 0),
    unit_price_cents INTEGER NOT NULL CHECK (unit_price_cents >= 0),
    total_cents      INTEGER NOT NULL CHECK (total_cents >= 0),
    position         INTEGER NOT NULL DEFAULT 0,
    created_at       TEXT NOT NULL,
    updated_at       TEXT NOT NULL
) STRICT;
CREATE INDEX quote_lines_by_quote ON quote_lines (quote_id, position);

CREATE TABLE tasks (
    id           TEXT PRIMARY KEY,
    title        TEXT NOT NULL CHECK (title <> ''),
    due          TEXT,
    assignee     TEXT,
    lead_id      TEXT REFERENCES leads (id),
    status       TEXT NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'done', 'cancelled')),
    completed_at TEXT,
    created_at   TEXT NOT NULL,
    updated_at   TEXT NOT NULL
) STRICT;
CREATE INDEX tasks_by_status ON tasks (status, due);
CREATE INDEX tasks_by_lead ON tasks (lead_id);

CREATE TABLE notes (
    id         TEXT PRIMARY KEY,
    text       TEXT NOT NULL CHECK (text <> ''),
    lead_id    TEXT REFERENCES leads (id),
    removed_at TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT;
CREATE INDEX notes_by_lead ON notes (lead_id);

CREATE TABLE jobs (
    id                TEXT PRIMARY KEY,
    quote_id          TEXT NOT NULL REFERENCES quotes (id),
    lead_id           TEXT NOT NULL REFERENCES leads (id),
    start_on          TEXT,
    scheduled_on      TEXT,
    crew              TEXT,
    status            TEXT NOT NULL DEFAULT 'created'
                      CHECK (status IN ('created', 'scheduled', 'started', 'completed', 'cancelled')),
    status_before     TEXT,
    cancelled_because TEXT,
    started_at        TEXT,
    completed_at      TEXT,
    created_at        TEXT NOT NULL,
    updated_at        TEXT NOT NULL
) STRICT;
-- Two people who accept one quote at once still get one job.
CREATE UNIQUE INDEX jobs_one_for_a_quote ON jobs (quote_id) WHERE status <> 'cancelled';
CREATE INDEX jobs_by_lead ON jobs (lead_id);
CREATE INDEX jobs_by_status ON jobs (status, created_at);

CREATE TABLE invoices (
    id             TEXT PRIMARY KEY,
    job_id         TEXT NOT NULL REFERENCES jobs (id),
    lead_id        TEXT NOT NULL REFERENCES leads (id),
    amount_cents   INTEGER NOT NULL CHECK (amount_cents > 0),
    paid_cents     INTEGER NOT NULL DEFAULT 0,
    due            TEXT,
    status         TEXT NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'paid', 'void')),
    status_before  TEXT,
    voided_because TEXT,
    created_at     TEXT NOT NULL,
    updated_at     TEXT NOT NULL,
    CHECK (paid_cents BETWEEN 0 AND amount_cents)
) STRICT;
CREATE INDEX invoices_by_job ON invoices (job_id);
CREATE INDEX invoices_by_status ON invoices (status, due);

CREATE TABLE payments (
    id           TEXT PRIMARY KEY,
    invoice_id   TEXT NOT NULL REFERENCES invoices (id),
    amount_cents INTEGER NOT NULL CHECK (amount_cents > 0),
    method       TEXT NOT NULL DEFAULT 'bank' CHECK (method IN ('card', 'bank', 'cash', 'cheque')),
    reference    TEXT,
    status       TEXT NOT NULL DEFAULT 'received' CHECK (status IN ('received', 'reversed')),
    created_at   TEXT NOT NULL,
    updated_at   TEXT NOT NULL
) STRICT;
CREATE INDEX payments_by_invoice ON payments (invoice_id);
CREATE INDEX payments_by_time ON payments (created_at);

CREATE TABLE messages (
    id          TEXT PRIMARY KEY,
    channel     TEXT NOT NULL CHECK (channel IN ('sms', 'email')),
    purpose     TEXT NOT NULL DEFAULT 'message'
                CHECK (purpose IN ('message', 'quote', 'invoice', 'review')),
    recipient   TEXT NOT NULL CHECK (recipient <> ''),
    subject     TEXT,
    body        TEXT NOT NULL,
    lead_id     TEXT REFERENCES leads (id),
    quote_id    TEXT REFERENCES quotes (id),
    invoice_id  TEXT REFERENCES invoices (id),
    job_id      TEXT REFERENCES jobs (id),
    status      TEXT NOT NULL DEFAULT 'sending'
                CHECK (status IN ('sending', 'sent', 'failed', 'unknown')),
    provider_id TEXT,
    error       TEXT,
    sent_at     TEXT,
    created_at  TEXT NOT NULL,
    updated_at  TEXT NOT NULL
) STRICT;
CREATE INDEX messages_by_lead ON messages (lead_id);
CREATE INDEX messages_by_time ON messages (created_at);

CREATE TABLE snapshots (
    id         TEXT PRIMARY KEY,
    label      TEXT,
    file_name  TEXT NOT NULL,
    sha256     TEXT NOT NULL CHECK (length(sha256) = 64),
    bytes      INTEGER NOT NULL CHECK (bytes >= 0),
    status     TEXT NOT NULL DEFAULT 'kept' CHECK (status IN ('kept', 'removed')),
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT;

-- What each call did, written together with it: a repetition finds its result here.
CREATE TABLE performed (
    key        TEXT PRIMARY KEY,
    tool       TEXT NOT NULL,
    result     TEXT NOT NULL CHECK (json_valid(result)),
    created_at TEXT NOT NULL
) STRICT;
CREATE INDEX performed_by_time ON performed (created_at);
