"""Photos and files: rows in the database, content on disk under its hash."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from podium.core.errors import ToolBroke
from podium.tools.packs import PackScope

from ..database import Database, Insert, Update, new_id, open_database
from ..media_files import remove_file, restore_file, store_file, verify_file
from .records import Arguments, Done, looking, must_be, perform_once, the

_OPEN = ("scheduled", "open")


async def create_asset(arguments: Arguments, scope: PackScope) -> dict[str, Any]:
    async with open_database(scope) as db:
        result = await perform_once(db, scope, lambda: _stored(arguments, scope, db))
        await _settle(scope, db, result["asset_id"])
        return result


async def _stored(arguments: Arguments, scope: PackScope, db: Database) -> Done:
    """The file is durable before its row is: a row without a file would be a lie."""
    inspection_id = arguments.get("inspection_id")
    if inspection_id:
        inspection = await the(db, "inspections", inspection_id)
        must_be(inspection, "inspection", _OPEN, "reopen it with inspection.reopen first")
    path = arguments.get("path")
    file = await store_file(
        scope,
        path=await asyncio.to_thread(_in_the_inbox, scope, path) if path else None,
        content=arguments.get("content"),
        sha256=arguments.get("sha256"),
    )
    facts = {"sha256": file.sha256, "bytes": file.bytes, "media_type": file.media_type}
    row = {
        "id": new_id("asset", scope.key),
        "inspection_id": inspection_id,
        **{name: arguments.get(name) for name in ("file_name", "caption", "taken_at")},
        **facts,
        "stored_as": file.stored_as,
        "status": "stored",
    }
    result = {"asset_id": row["id"], "file_name": row["file_name"], **facts}
    return Done([Insert("media_assets", row)], {**result, "undo": {"asset_id": row["id"]}})


def _in_the_inbox(scope: PackScope, path: str) -> str:
    """Return the path of the file. Raises `ToolBroke` outside of the inbox: words may name any path."""
    named = scope.settings.get("ROOFING_MEDIA_INBOX")
    inbox = (Path(named).expanduser() if named else scope.state / "inbox").resolve()
    try:
        file = (inbox / path).resolve()
    except (OSError, ValueError):
        raise ToolBroke(f"{path!r} is not a valid path of a file; give another one") from None
    if not file.is_relative_to(inbox):
        raise ToolBroke(
            f"{path!r} is not in the media inbox {str(inbox)!r}; put the file there, "
            "or set ROOFING_MEDIA_INBOX to the folder it is in"
        )
    return str(file)


async def remove_asset(arguments: Arguments, scope: PackScope) -> dict[str, Any]:
    return await _moved(arguments, scope, "stored", "removed", "it is already removed")


async def restore_asset(arguments: Arguments, scope: PackScope) -> dict[str, Any]:
    return await _moved(arguments, scope, "removed", "stored", "there is nothing to restore")


async def _moved(
    arguments: Arguments, scope: PackScope, before: str, status: str, hint: str
) -> dict[str, Any]:
    async def decide() -> Done:
        asset = await the(db, "media_assets", arguments["asset_id"])
        must_be(asset, "photo", (before,), hint)
        change = Update("media_assets", asset["id"], {"status": status}, {"status": before})
        undo = {"asset_id": asset["id"]}
        return Done([change], {"asset_id": asset["id"], "status": status, "undo": undo})

    async with open_database(scope) as db:
        result = await perform_once(db, scope, decide)
        await _settle(scope, db, arguments["asset_id"])
        return result


async def _settle(scope: PackScope, db: Database, asset_id: str) -> None:
    """Put the file where its assets say: in its place while one of them is stored, else aside.

    The row is changed first; after a crash in between, the repeated call comes here again.
    """
    asset = await the(db, "media_assets", asset_id)
    if await db.count("media_assets", {"stored_as": asset["stored_as"], "status": "stored"}):
        await restore_file(scope, asset["stored_as"])
    else:
        await remove_file(scope, asset["stored_as"])


@looking
async def verify_asset(arguments: Arguments, scope: PackScope, db: Database) -> dict[str, Any]:
    asset = await the(db, "media_assets", arguments["asset_id"])
    must_be(asset, "photo", ("stored",), "bring it back with media.restore_asset first")
    found = await verify_file(scope, asset["stored_as"], asset["sha256"])
    return {
        "asset_id": asset["id"],
        "intact": found.ok,
        "sha256": found.sha256,
        "recorded_sha256": asset["sha256"],
        "problem": found.problem,
    }
