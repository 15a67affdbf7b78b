"""Steps shared by all handlers: open the database, find a row or report that it is missing, act once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any

from podium.core.errors import ToolBroke
from podium.tools.packs import PackScope

from ..database import Change, Conflict, Database, open_database
from .money import dollars
from .taking_back import with_usable_undo

Arguments = dict[str, Any]
Row = dict[str, Any]
Handler = Callable[[Arguments, PackScope], Awaitable[dict[str, Any]]]

_TRIES = 12
"""As many calls may want to change one row at once, of which one at a time gets through."""
_WORDS = {
    "leads": ("lead", "leads.find"),
    "inspections": ("inspection", "os.list_inspections"),
    "inspection_items": ("item", "os.get_inspection"),
    "media_assets": ("photo or file", "os.get_inspection"),
    "quotes": ("quote", "os.list_quotes"),
    "quote_lines": ("line", "os.get_quote"),
    "tasks": ("task", "os.list_tasks"),
    "notes": ("note", "os.search_notes"),
    "jobs": ("job", "os.list_jobs"),
    "invoices": ("invoice", "os.list_invoices"),
    "payments": ("payment", "os.get_invoice"),
    "snapshots": ("snapshot", "os.list_snapshots"),
}
"""Table → what a person calls a row of it, and the tool that shows which there are."""


@dataclass(frozen=True)
class Done:
    """Changes of a tool, and its result once they are durable."""

    changes: list[Change]
    """What is there already comes before what is new: a new row holds on to those that it names, and
    two calls that hold on to one row, and then want to change it, wait for each other for good."""
    result: dict[str, Any]


Deciding = Callable[[Arguments, PackScope, Database], Awaitable[Done]]
Looking = Callable[[Arguments, PackScope, Database], Awaitable[dict[str, Any]]]


def recorded(decide: Deciding) -> Handler:
    """A handler that makes what `decide` gives durable, once under the call's key."""

    @wraps(decide)
    async def perform(arguments: Arguments, scope: PackScope) -> dict[str, Any]:
        async with open_database(scope) as db:
            return await perform_once(db, scope, lambda: decide(arguments, scope, db))

    return perform


async def perform_once(
    db: Database, scope: PackScope, decide: Callable[[], Awaitable[Done]]
) -> dict[str, Any]:
    """The result; that of before when the key was performed already."""
    for attempt in range(_TRIES):
        before = await db.performed(scope.key)
        if before is not None:
            return before
        try:
            done = await decide()
        except ToolBroke:
            # The same call, performed elsewhere in the meantime, is what stands in the way.
            before = await db.performed(scope.key)
            if before is not None:
                return before
            raise
        try:
            result = with_usable_undo(done.result, scope)
            return await db.apply(scope.key, done.changes, result)
        except Conflict:
            # Somebody changed a row since it was read: what they did may allow another decision.
            if attempt == _TRIES - 1:
                raise
    raise AssertionError("the last attempt returns or raises")


def looking(look: Looking) -> Handler:
    """A handler that only reads."""

    @wraps(look)
    async def perform(arguments: Arguments, scope: PackScope) -> dict[str, Any]:
        async with open_database(scope) as db:
            return await look(arguments, scope, db)

    return perform


async def the(db: Database, table: str, id: str) -> Row:
    """The row. Raises `ToolBroke` with what to do when there is none."""
    row = await db.row(table, id)
    if row is None:
        word, finder = _WORDS[table]
        raise ToolBroke(f"there is no {word} {id!r}; look for its id with {finder}")
    return row


def shown(row: Row) -> Row:
    """A row as people see it: dollars for cents, and nothing that is empty or for the pack alone."""
    return {
        name.removesuffix("_cents"): dollars(value) if name.endswith("_cents") else value
        for name, value in row.items()
        if value is not None and name != "bills_version"
    }


def must_stand(
    table: str, row: Row, arguments: Arguments, columns: Mapping[str, str] | None = None
) -> None:
    """Raises `Conflict` unless the row still has what the argument `expected` says.

    Undo gives it, so that taking an older change back never overwrites a newer one. `columns` names
    the columns that are called otherwise than the arguments are.
    """
    for name, wanted in arguments.get("expected", {}).items():
        column = (columns or {}).get(name, name)
        if (row[column] or "") == wanted:
            continue
        raise Conflict(
            f"the {name} of {_WORDS[table][0]} {row['id']!r} is {row[column] or 'empty'}, not "
            f"{wanted or 'empty'} any more; nothing was changed: undo the later changes first, "
            "or set the value directly",
            table=table,
            id=row["id"],
            column=column,
        )


def must_be(row: Row, what: str, allowed: tuple[str, ...], hint: str) -> None:
    """Raises `ToolBroke` unless the row's status is one of those; `hint` says what to do."""
    if row["status"] not in allowed:
        raise ToolBroke(
            f"{what} {row['id']!r} is {row['status']}, not {' or '.join(allowed)}; {hint}"
        )
