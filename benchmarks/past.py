"""A long past for a database: runs that really ran, copied with other ids and days, in SQL alone."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, LiteralString

DAYS = 60
"""Over which the past runs are spread evenly."""

_TEMPLATE: LiteralString = (
    "SELECT finished_at, body::json ->> 'created_at' FROM podium.runs WHERE id = %(template)s"
)

_PAST: LiteralString = """
    CREATE TEMP TABLE past AS
    SELECT number, back, to_char(day, 'YYYY-MM-DD') AS day,
           'run_' || lpad(to_hex((extract(epoch FROM day) * 1000)::bigint), 12, '0')
           || '7' || substr(chance, 1, 3) || '9' || substr(chance, 4, 15) AS id
    FROM (SELECT number, (%(runs)s - number) * %(apart)s::bigint AS back, md5(number::text) AS chance,
                 to_timestamp((%(now)s - (%(runs)s - number) * %(apart)s::bigint) / 1e6)
                 AT TIME ZONE 'UTC' AS day
          FROM generate_series(0, %(runs)s - 1) AS number) AS numbered
"""

_COPIES: tuple[LiteralString, ...] = (
    """
    INSERT INTO podium.runs (id, tail, flow, status, priority, claimed_at, finished_at, fence,
                             cancel_requested, body)
    SELECT past.id, right(past.id, 12), flow, status, priority, claimed_at - back, finished_at - back,
           fence, cancel_requested,
           replace(replace(body, %(template)s, past.id), %(today)s, past.day)
    FROM podium.runs AS run, past WHERE run.id = %(template)s ORDER BY past.number
    """,
    """
    INSERT INTO podium.steps (run_id, key, ordinal, status, body)
    SELECT past.id, key, ordinal, status,
           replace(replace(body, %(template)s, past.id), %(today)s, past.day)
    FROM podium.steps AS step, past WHERE run_id = %(template)s ORDER BY past.number, ordinal
    """,
    """
    INSERT INTO podium.events (position, run_id, seq, type, at, body)
    SELECT position - back, past.id, seq, type, at - back, replace(body, %(template)s, past.id)
    FROM podium.events AS event, past WHERE run_id = %(template)s ORDER BY past.number, seq
    """,
)


@dataclass(frozen=True)
class Past:
    """Past runs that were added: the ids, oldest first, and their distribution in time."""

    ids: tuple[str, ...]
    until: float
    """Seconds since 1970, when the last of them would have been followed by the next."""

    def age_of(self, oldest: int) -> timedelta:
        """Return how long ago the oldest so many had ended, seen from now, and no others."""
        back = DAYS * 86_400 * (1 - (oldest - 0.5) / len(self.ids))
        return timedelta(seconds=time.time() - self.until + back)


def add_past(url: str, template: str, runs: int) -> Past:
    """Copy a run that has ended, with its steps and events, so often.

    The database is left as its own housekeeping would leave it: vacuumed, its statistics known.
    """
    import psycopg

    with psycopg.connect(url) as connection:
        found = connection.execute(_TEMPLATE, {"template": template}).fetchone()
        assert found is not None
        ended, made = int(found[0]), str(found[1])
        values: dict[str, Any] = {
            "runs": runs,
            "apart": DAYS * 86_400_000_000 // runs,
            "now": ended,
            "today": made[:10],
            "template": template,
        }
        for statement in (_PAST, *_COPIES):
            connection.execute(statement, values)
        ids = connection.execute("SELECT id FROM past ORDER BY number").fetchall()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE podium.runs, podium.steps, podium.events")
    return Past(tuple(str(row[0]) for row in ids), ended / 1e6)
