"""`inspection_packet_v1`: a sound packet becomes an inspection, a bad one is refused with every fault."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from packs.roofing.handlers.packet import packet_faults

from tests.integration.packs.roofing.office import Office, open_office
from tests.unit.packs.roofing.roofing_harness import FOLDER

PHOTO = b"\xff\xd8\xff" + b"cracked ridge" * 9


def a_packet(**changes: Any) -> dict[str, Any]:
    complete: dict[str, Any] = {
        "version": "inspection_packet_v1",
        "lead_id": "lead_1",
        "site": {"address": "14 Banksia Court", "suburb": "Rowville"},
        "inspected_on": "2026-11-12",
        "inspector": "Brendan Walsh",
        "roof_type": "tile",
        "photos": [
            {"file": "ridge.jpg", "file_name": "ridge.jpg", "caption": "north"},
            {
                "content_base64": base64.b64encode(PHOTO).decode(),
                "file_name": "valley.jpg",
                "sha256": hashlib.sha256(PHOTO).hexdigest(),
                "taken_at": "2026-11-12T10:15:00+11:00",
            },
        ],
        "measurements": [{"label": "ridge length", "value": 12.4, "unit": "m"}],
        "defects": [
            {"label": "cracked ridge cap", "severity": "high", "photo_refs": ["ridge.jpg"]},
            {"label": "rusted valley", "severity": "critical", "photo_refs": ["valley.jpg"]},
        ],
    }
    return copy.deepcopy(complete) | changes


def schema_faults(packet: Any) -> list[str]:
    schema = json.loads((FOLDER / "inspection_packet_v1.schema.json").read_text())
    found = Draft202012Validator(schema).iter_errors(packet)
    return sorted("".join(f"/{part}" for part in fault.absolute_path) for fault in found)


async def test_a_sound_packet_has_no_faults() -> None:
    assert schema_faults(a_packet()) == []
    assert await packet_faults(a_packet()) == []


async def test_the_packet_on_the_page_is_sound() -> None:
    page = (FOLDER.parents[1] / "docs" / "roofing.md").read_text()
    shown = re.search(r"^```json\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert shown
    packet = json.loads(shown[1])["inspection_packet"]
    assert schema_faults(packet) == await packet_faults(packet) == []


async def test_every_fault_that_a_schema_cannot_see_is_named_by_its_place() -> None:
    packet = a_packet(inspected_on="2026-02-30")
    packet["photos"][1] |= {"file_name": "ridge.jpg", "sha256": "0" * 64, "taken_at": "yesterday"}
    packet["photos"].append({"file_name": "x.jpg", "content_base64": "abc", "file": "x.jpg"})
    packet["lead"] = {"name": "Sarah Bell", "phone": "+61400123456", "suburb": "Clayton"}
    assert schema_faults(packet) == []
    places = [fault.partition(":")[0] for fault in await packet_faults(packet)]
    assert places == [
        "/lead_id",
        "/inspected_on",
        "/photos/1/file_name",
        "/photos/1/taken_at",
        "/photos/1/sha256",
        "/photos/2/file",
        "/photos/2/content_base64",
        "/defects/1/photo_refs/0",
    ]


async def test_a_packet_with_nothing_in_it_is_a_fault() -> None:
    faults = await packet_faults(a_packet(measurements=[], defects=[]))
    assert [fault.partition(":")[0] for fault in faults] == ["/measurements"]


@pytest.mark.parametrize(
    ("changes", "places"),
    [
        ({"version": "inspection_packet_v2"}, ["/version"]),
        ({"weather": "fine"}, [""]),
        ({"lead": {"name": "Sarah", "phone": "0400 123 456"}}, ["/lead", "/lead/phone"]),
        ({"site": {"address": "1 High St"}}, ["/site"]),
        ({"roof_type": "thatch", "inspected_on": "12/11/2026"}, ["/inspected_on", "/roof_type"]),
        ({"photos": [{"file_name": "a.jpg"}]}, ["/photos/0"]),
        ({"photos": [{"file_name": "../a.jpg", "file": "a.jpg"}]}, ["/photos/0/file_name"]),
        ({"measurements": [{"label": "x", "value": "12", "unit": "m"}]}, ["/measurements/0/value"]),
        ({"defects": [{"label": "x", "severity": "awful"}]}, ["/defects/0/severity"]),
    ],
)
def test_the_schema_names_every_fault_of_shape_by_its_place(
    changes: dict[str, Any], places: list[str]
) -> None:
    assert schema_faults(a_packet(**changes)) == places


def test_a_packet_needs_its_lead_or_a_new_one() -> None:
    packet = a_packet()
    del packet["lead_id"]
    assert schema_faults(packet) == [""]
    new = {"name": "Sarah Bell", "phone": "+61400123456", "suburb": "Clayton"}
    assert schema_faults({**packet, "lead": new}) == []


@pytest.mark.parametrize(
    "packet",
    [None, [], "packet", {}, {"photos": 3, "defects": [1]}, {"photos": [{"file_name": []}]}],
)
async def test_what_is_no_packet_at_all_does_not_break_the_check(packet: Any) -> None:
    assert all(isinstance(fault, str) for fault in await packet_faults(packet))


async def test_a_packet_becomes_photos_inspection_items_and_scope_in_this_order(
    tmp_path: Path,
) -> None:
    (tmp_path / "ridge.jpg").write_bytes(PHOTO + b"!")
    office = open_office(tmp_path, {"ROOFING_MEDIA_INBOX": str(tmp_path)})
    packet = a_packet(lead_id=await office.lead())
    skill = office.pack.skill("inspection.from_packet")
    assert skill is not None
    assert [step.tool for step in skill.steps] == [
        "leads.create",
        "media.create_asset",
        "inspection.create",
        "inspection.add_items",
        "inspection.generate_scope_summary",
    ]
    summary = await perform(office, packet)
    assert summary["summary"] == (
        "Scope of works: 14 Banksia Court, Rowville\nRoof: tile\nInspected on 2026-11-12\n"
        "by Brendan Walsh\n\nWorks\n1. rusted valley (critical: at once) [1 photo]\n"
        "2. cracked ridge cap (high: soon) [1 photo]\n\nMeasurements\n- ridge length: 12.4 m"
    )
    shown = await office.do("os.get_inspection", inspection_id=summary["inspection_id"])
    assert [photo["file_name"] for photo in shown["inspection"]["photos"]] == [
        *("ridge.jpg", "valley.jpg")
    ]


async def perform(office: Office, packet: dict[str, Any]) -> dict[str, Any]:
    """Plan of the skill for a packet of a known lead."""
    names = {"path": "file", "content": "content_base64"}
    kept = ("file_name", "caption", "sha256", "taken_at")
    photos: list[str] = []
    for photo in packet["photos"]:
        office.now = office.now.replace(second=len(photos))
        given = {to: photo[name] for to, name in names.items() if name in photo}
        given |= {name: photo[name] for name in kept if name in photo}
        photos.append((await office.do("media.create_asset", **given))["asset_id"])
    made = await office.do(
        "inspection.create",
        lead_id=packet["lead_id"],
        site_address=packet["site"]["address"],
        suburb=packet["site"]["suburb"],
        asset_ids=photos,
        **{name: packet[name] for name in ("inspected_on", "inspector", "roof_type")},
    )
    inspection_id = made["inspection_id"]
    items = [packet["measurements"], packet["defects"]]
    await office.do("inspection.add_items", inspection_id=inspection_id, items=items)
    return await office.do("inspection.generate_scope_summary", inspection_id=inspection_id)
