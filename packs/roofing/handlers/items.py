"""The items of an inspection: measurements and defects, and the photos that show them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from podium.core.errors import ToolBroke

from ..database import Database
from .records import Row, must_be, the

MAX_ITEMS = 1000
_MAX_AT_ONCE = 500
"""More ids than this would not fit on a receipt, and could then not be taken back."""


async def items_of(db: Database, inspection_id: str) -> list[Row]:
    return await db.rows(
        "inspection_items", {"inspection_id": inspection_id}, order="position", limit=MAX_ITEMS
    )


async def photo_ids(db: Database, inspection_id: str) -> dict[str, str]:
    """File name → id of the stored photos of an inspection; of two with one name, the newer."""
    where = {"inspection_id": inspection_id, "status": "stored"}
    found = await db.rows("media_assets", where, limit=MAX_ITEMS)
    return {asset["file_name"]: asset["id"] for asset in found}


async def new_items(
    db: Database, given: list[Any], photos: dict[str, str], room: int = MAX_ITEMS
) -> list[Row]:
    """Rows without ids. `given` are items, or lists of them. Raises `ToolBroke` for the first fault."""
    items = list(_flat(given))
    if not items:
        raise ToolBroke("there are no items; give at least one measurement or defect")
    if len(items) > _MAX_AT_ONCE:
        raise ToolBroke(f"{len(items)} items are too many for one call; add at most {_MAX_AT_ONCE}")
    if len(items) > room:
        raise ToolBroke(f"an inspection has at most {MAX_ITEMS} items; there is room for {room}")
    return [await _row(db, item, photos) for item in items]


def _flat(given: list[Any]) -> Iterator[dict[str, Any]]:
    for item in given:
        if isinstance(item, list):
            yield from _flat(item)
        else:
            yield item


async def _row(db: Database, item: dict[str, Any], photos: dict[str, str]) -> Row:
    kind = item.get("kind") or ("defect" if "severity" in item else "measurement")
    if kind == "measurement" and "value" not in item:
        raise ToolBroke(
            f"measurement {item['label']!r} has no value; give one, or a severity if it is a defect"
        )
    asset_ids = [*item.get("asset_ids", []), *_referred(item, photos)]
    for asset_id in item.get("asset_ids", []):
        asset = await the(db, "media_assets", asset_id)
        must_be(asset, "photo", ("stored",), "bring it back with media.restore_asset first")
    fields = ("label", "value", "unit", "severity", "notes")
    return {
        "kind": kind,
        **{name: item.get(name) for name in fields},
        "asset_ids": list(dict.fromkeys(asset_ids)),
    }


def _referred(item: dict[str, Any], photos: dict[str, str]) -> list[str]:
    unknown = [name for name in item.get("photo_refs", []) if name not in photos]
    if unknown:
        raise ToolBroke(
            f"{item['label']!r} refers to {', '.join(map(repr, unknown))}, "
            "which is not a photo of this inspection; store it first"
        )
    return [photos[name] for name in item.get("photo_refs", [])]
