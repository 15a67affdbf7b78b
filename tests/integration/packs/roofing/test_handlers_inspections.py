"""Inspections, from the booking to the submitted report."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.packs.roofing.office import Office, open_office


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return open_office(tmp_path)


CRACKED = {"label": "cracked ridge cap", "severity": "high", "notes": "north side"}
RIDGE = {"label": "ridge length", "value": 12.4, "unit": "m"}


async def an_inspection(office: Office) -> str:
    made = await office.do(
        "inspection.create", lead_id=await office.lead(), site_address="14 Banksia Court"
    )
    return str(made["inspection_id"])


async def test_a_booked_inspection_moves_its_lead_on(office: Office) -> None:
    lead_id = await office.lead(address="14 Banksia Court")
    booked = await office.do(
        "inspection.schedule", lead_id=lead_id, date="2027-04-12", time="10:00"
    )
    row = office.row("inspections", booked["inspection_id"])
    assert (row["scheduled_on"], row["scheduled_time"]) == ("2027-04-12", "10:00")
    assert row["site_address"] == "14 Banksia Court, Clayton"
    assert office.row("leads", lead_id)["stage"] == "inspection"


async def test_a_lead_that_is_further_on_stays_there(office: Office) -> None:
    lead_id = await office.lead()
    await office.do("leads.set_stage", lead_id=lead_id, stage="won")
    await office.do("inspection.schedule", lead_id=lead_id, date="2027-04-12")
    assert office.row("leads", lead_id)["stage"] == "won"


async def test_a_day_that_no_calendar_has_is_refused(office: Office) -> None:
    lead_id = await office.lead()
    words = await office.refused("inspection.schedule", lead_id=lead_id, date="2027-02-30")
    assert "'2027-02-30' is not a date" in words


async def test_an_inspection_is_made_today_where_the_business_is(office: Office) -> None:
    office.now = office.now.replace(hour=22)
    made = await office.do(
        "inspection.create",
        lead_id=await office.lead(),
        site_address="14 Banksia Court",
        suburb="Rowville",
    )
    row = office.row("inspections", made["inspection_id"])
    assert row["inspected_on"] == "2026-11-17"
    assert row["site_address"] == "14 Banksia Court, Rowville"


async def test_items_are_kept_in_their_order_whether_in_lists_or_not(office: Office) -> None:
    inspection_id = await an_inspection(office)
    added = await office.do(
        "inspection.add_items", inspection_id=inspection_id, items=[[RIDGE], [CRACKED], RIDGE]
    )
    shown = (await office.do("os.get_inspection", inspection_id=inspection_id))["inspection"]
    assert [item["kind"] for item in shown["items"]] == ["measurement", "defect", "measurement"]
    assert [item["id"] for item in shown["items"]] == added["item_ids"]


async def test_items_are_taken_off_and_put_back(office: Office) -> None:
    inspection_id = await an_inspection(office)
    added = await office.do(
        "inspection.add_items", inspection_id=inspection_id, items=[RIDGE, CRACKED]
    )
    removed = await office.undo("inspection.add_items", added)
    assert removed["count"] == 2
    again = await office.undo("inspection.remove_items", removed)
    assert again["count"] == 2
    assert office.row("inspection_items", again["last_item_id"])["severity"] == "high"


async def test_no_items_at_all_are_refused(office: Office) -> None:
    inspection_id = await an_inspection(office)
    words = await office.refused(
        "inspection.add_items", inspection_id=inspection_id, items=[[], []]
    )
    assert "no items" in words


async def test_a_measurement_without_a_value_is_refused(office: Office) -> None:
    words = await office.refused(
        "inspection.add_items",
        inspection_id=await an_inspection(office),
        items=[{"label": "eaves"}],
    )
    assert "'eaves' has no value" in words


async def test_an_item_that_refers_to_no_photo_is_refused(office: Office) -> None:
    inspection_id = await an_inspection(office)
    for item in ({"photo_refs": ["no.jpg"]}, {"asset_ids": ["asset_1"]}):
        words = await office.refused(
            "inspection.add_items", inspection_id=inspection_id, items=[{**CRACKED, **item}]
        )
        assert "no.jpg" in words or "asset_1" in words


async def test_more_items_than_fit_on_a_receipt_are_refused(office: Office) -> None:
    inspection_id = await an_inspection(office)
    words = await office.refused(
        "inspection.add_items", inspection_id=inspection_id, items=[[RIDGE] * 300, [RIDGE] * 300]
    )
    assert "at most 500" in words


async def test_items_of_another_inspection_are_not_removed(office: Office) -> None:
    one, other = await an_inspection(office), await an_inspection(office)
    added = await office.do("inspection.add_items", inspection_id=one, items=[RIDGE])
    words = await office.refused(
        "inspection.remove_items", inspection_id=other, item_ids=added["item_ids"]
    )
    assert added["last_item_id"] in words


async def test_findings_open_a_booked_inspection(office: Office) -> None:
    booked = await office.do(
        "inspection.schedule", lead_id=await office.lead(), date="2026-11-16", inspector="Brendan"
    )
    inspection_id = booked["inspection_id"]
    await office.do("inspection.add_items", inspection_id=inspection_id, items=[RIDGE])
    row = office.row("inspections", inspection_id)
    assert (row["status"], row["inspected_on"]) == ("open", "2026-11-16")


async def test_the_scope_lists_the_worst_first_and_counts_its_versions(office: Office) -> None:
    inspection_id = await an_inspection(office)
    worse = {"label": "sagging beam", "severity": "critical"}
    items = [CRACKED, RIDGE, worse]
    await office.do("inspection.add_items", inspection_id=inspection_id, items=items)
    first = await office.do("inspection.generate_scope_summary", inspection_id=inspection_id)
    second = await office.do("inspection.generate_scope_summary", inspection_id=inspection_id)
    assert (first["version"], second["version"]) == (1, 2)
    assert first["summary"] == (
        "Scope of works: 14 Banksia Court\nInspected on 2026-11-16\n\n"
        "Works\n1. sagging beam (critical: at once)\n"
        "2. cracked ridge cap (high: soon): north side\n\n"
        "Measurements\n- ridge length: 12.4 m"
    )


async def test_an_empty_inspection_has_no_scope_and_is_not_submitted(office: Office) -> None:
    inspection_id = await an_inspection(office)
    for tool in ("inspection.generate_scope_summary", "inspection.submit"):
        assert "has no items" in await office.refused(tool, inspection_id=inspection_id)


async def test_a_submitted_inspection_is_closed_until_it_is_reopened(office: Office) -> None:
    inspection_id = await an_inspection(office)
    await office.do("inspection.add_items", inspection_id=inspection_id, items=[RIDGE])
    submitted = await office.do("inspection.submit", inspection_id=inspection_id)
    words = await office.refused("inspection.add_items", inspection_id=inspection_id, items=[RIDGE])
    assert "is submitted, not scheduled or open" in words
    reopened = await office.undo("inspection.submit", submitted)
    assert reopened["status"] == "open"
    assert office.row("inspections", inspection_id)["submitted_at"] is None
    await office.undo("inspection.reopen", reopened)
    assert office.row("inspections", inspection_id)["status"] == "submitted"


async def test_a_cancelled_inspection_comes_back_as_it_was(office: Office) -> None:
    booked = await office.do("inspection.schedule", lead_id=await office.lead(), date="2027-04-12")
    cancelled = await office.undo("inspection.schedule", booked)
    assert cancelled["status_before"] == "scheduled"
    inspection_id = booked["inspection_id"]
    assert "is cancelled" in await office.refused("inspection.cancel", inspection_id=inspection_id)
    back = await office.undo("inspection.cancel", cancelled)
    assert back["status"] == "scheduled"
    await office.undo("inspection.reinstate", back)
    assert office.row("inspections", inspection_id)["cancelled_because"] == "taken back"


async def test_an_inspection_with_a_quote_on_it_is_not_called_off(office: Office) -> None:
    lead_id = await office.lead()
    made = await office.do("inspection.create", lead_id=lead_id, site_address="1 High St")
    quote = await office.do("quote.create", lead_id=lead_id, inspection_id=made["inspection_id"])
    words = await office.refused("inspection.cancel", inspection_id=made["inspection_id"])
    assert quote["quote_id"] in words
    await office.do("quote.decline", quote_id=quote["quote_id"])
    await office.do("inspection.cancel", inspection_id=made["inspection_id"])


async def test_an_archived_lead_gets_no_inspection(office: Office) -> None:
    lead_id = await office.lead()
    await office.do("leads.archive", lead_id=lead_id)
    for tool, more in (
        ("inspection.create", {"site_address": "1 High St"}),
        ("inspection.schedule", {"date": "2027-04-12"}),
    ):
        assert "leads.restore" in await office.refused(tool, lead_id=lead_id, **more)
