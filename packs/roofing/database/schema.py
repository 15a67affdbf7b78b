"""Tables, columns and the kind of each column. Nothing else reaches SQL."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from podium.core.errors import ToolBroke


class Kind(StrEnum):
    """Kind of a column's values; every backend returns them as the same plain JSON."""

    TEXT = "text"
    INTEGER = "integer"
    """Counts, and money in cents."""
    REAL = "real"
    DATE = "date"
    """`2026-11-15`."""
    TIMESTAMP = "moment"
    """`2026-11-15T09:30:00.000000+00:00`, always UTC and of this length, so that it sorts as text."""
    JSON = "json"


@dataclass(frozen=True)
class Table:
    """A table with its columns, in the order in which rows are given back."""

    name: str
    columns: dict[str, Kind]
    key: str = "id"

    def column(self, name: str) -> Kind:
        """Raises `ToolBroke` for a column that the table does not have."""
        kind = self.columns.get(name)
        if kind is None:
            raise ToolBroke(
                f"table {self.name!r} has no column {name!r}; it has {', '.join(self.columns)}"
            )
        return kind


_KINDS = {kind.value: kind for kind in Kind}


def _table(name: str, columns: str) -> Table:
    """Columns as words; `due:date` is no text, all others are."""
    pairs = (word.partition(":") for word in columns.split())
    found = {column: _KINDS[kind or "text"] for column, _, kind in pairs}
    return Table(name, {"id": Kind.TEXT, **found, **_STAMPS})


_STAMPS = {"created_at": Kind.TIMESTAMP, "updated_at": Kind.TIMESTAMP}

_ALL = (
    _table(
        "leads",
        "name phone email address suburb postcode source stage stage_before assignee notes"
        " archived_because",
    ),
    _table(
        "inspections",
        "lead_id site_address scheduled_on:date scheduled_time inspected_on:date inspector roof_type"
        " notes status status_before cancelled_because scope_summary scope_version:integer"
        " submitted_at:moment",
    ),
    _table(
        "inspection_items",
        "inspection_id kind label value:real unit severity notes asset_ids:json position:integer",
    ),
    _table(
        "media_assets",
        "inspection_id file_name caption media_type bytes:integer sha256 stored_as taken_at:moment"
        " status",
    ),
    _table(
        "quotes",
        "lead_id inspection_id title status status_before total_cents:integer declined_because"
        " finalized_at:moment accepted_at:moment",
    ),
    _table(
        "quote_lines",
        "quote_id description quantity:real unit_price_cents:integer total_cents:integer"
        " position:integer",
    ),
    _table("tasks", "title due:date assignee lead_id status completed_at:moment"),
    _table("notes", "text lead_id removed_at:moment"),
    _table(
        "jobs",
        "quote_id lead_id start_on:date scheduled_on:date crew status status_before"
        " cancelled_because started_at:moment completed_at:moment bills_version:integer",
    ),
    _table(
        "invoices",
        "job_id lead_id amount_cents:integer paid_cents:integer due:date status status_before"
        " voided_because",
    ),
    _table("payments", "invoice_id amount_cents:integer method reference status"),
    _table(
        "messages",
        "channel purpose recipient subject body lead_id quote_id invoice_id job_id status"
        " provider_id error sent_at:moment",
    ),
    _table("snapshots", "label file_name sha256 bytes:integer status"),
    Table(
        "performed",
        {"key": Kind.TEXT, "tool": Kind.TEXT, "result": Kind.JSON, "created_at": Kind.TIMESTAMP},
        key="key",
    ),
)

TABLES: dict[str, Table] = {table.name: table for table in _ALL}
"""Parents before children, so that rows can be put in in this order."""


def table_named(name: str) -> Table:
    """Raises `ToolBroke` for a table that there is not."""
    table = TABLES.get(name)
    if table is None:
        raise ToolBroke(f"there is no table {name!r}; tables: {', '.join(TABLES)}")
    return table
