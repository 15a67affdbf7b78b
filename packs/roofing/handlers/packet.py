"""Checks of a packet that `inspection_packet_v1.schema.json` cannot express."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
from collections.abc import Iterator
from datetime import date, datetime
from typing import Any


async def packet_faults(packet: Any) -> list[str]:
    """Every fault as `/pointer: words`; none: the packet is sound. Its shape is the schema's matter."""
    # Photos may be many megabytes, each of which is decoded and hashed.
    return await asyncio.to_thread(_faults, packet)


def _faults(packet: Any) -> list[str]:
    if not isinstance(packet, dict):
        return [": a packet is an object"]
    photos, defects = _objects(packet, "photos"), _objects(packet, "defects")
    names = [photo.get("file_name") for _, photo in photos]
    return [
        *_both_faults("", packet, "lead_id", "lead"),
        *_day_faults(packet),
        *_item_faults(packet),
        *(fault for number, photo in photos for fault in _photo_faults(number, photo, names)),
        *(
            fault
            for number, defect in defects
            for fault in _reference_faults(number, defect, names)
        ),
    ]


def _objects(packet: dict[str, Any], part: str) -> list[tuple[int, dict[str, Any]]]:
    listed = packet.get(part)
    if not isinstance(listed, list):
        return []
    return [(number, item) for number, item in enumerate(listed) if isinstance(item, dict)]


def _both_faults(place: str, given: dict[str, Any], one: str, other: str) -> Iterator[str]:
    """A schema can forbid this too, but cannot say why."""
    if one in given and other in given:
        yield f"{place}/{one}: give {one} or {other}, not both"


def _day_faults(packet: dict[str, Any]) -> Iterator[str]:
    day = packet.get("inspected_on")
    if isinstance(day, str):
        try:
            date.fromisoformat(day)
        except ValueError:
            yield f"/inspected_on: {day!r:.40} is not a date; write one such as 2027-03-04"


def _item_faults(packet: dict[str, Any]) -> Iterator[str]:
    if packet.get("measurements") == [] and packet.get("defects") == []:
        yield "/measurements: there are no measurements and no defects; give at least one"


def _photo_faults(number: int, photo: dict[str, Any], names: list[Any]) -> Iterator[str]:
    place, name = f"/photos/{number}", photo.get("file_name")
    if isinstance(name, str) and name in names[:number]:
        first = names.index(name)
        yield f"{place}/file_name: {name!r} is also the name of /photos/{first}; use another name"
    yield from _both_faults(place, photo, "file", "content_base64")
    taken_at = photo.get("taken_at")
    if isinstance(taken_at, str) and not _is_timestamp(taken_at):
        yield f"{place}/taken_at: {taken_at!r:.40} is not a time with an offset, such as 2027-03-04T10:15:00+11:00"
    content = photo.get("content_base64")
    if isinstance(content, str):
        yield from _content_faults(place, content, photo.get("sha256"))


def _is_timestamp(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _content_faults(place: str, content: str, sha256: Any) -> Iterator[str]:
    try:
        data = base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError):
        yield f"{place}/content_base64: not valid base64; encode the file again"
        return
    if isinstance(sha256, str) and hashlib.sha256(data).hexdigest() != sha256.lower():
        yield f"{place}/sha256: does not match the content; send the file again"


def _reference_faults(number: int, defect: dict[str, Any], names: list[Any]) -> Iterator[str]:
    references = defect.get("photo_refs")
    for index, name in enumerate(references if isinstance(references, list) else ()):
        if name not in names:
            place = f"/defects/{number}/photo_refs/{index}"
            yield f"{place}: {name!r:.80} is not the file name of a photo in this packet"
