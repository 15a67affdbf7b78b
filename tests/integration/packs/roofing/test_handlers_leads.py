"""Leads, from the first call to the archive."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.packs.roofing.office import Office, open_office


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return open_office(tmp_path)


async def test_a_new_lead_is_on_the_books_with_its_number(office: Office) -> None:
    made = await office.do(
        "leads.create", name="Sarah Bell", phone="+61400123456", suburb="Clayton", source="web"
    )
    row = office.row("leads", made["lead_id"])
    assert (row["name"], row["phone"], row["stage"]) == ("Sarah Bell", "+61400123456", "new")
    assert (row["source"], made["same_phone"]) == ("web", [])
    assert made["verification"][0]["ok"]


async def test_somebody_who_rang_before_is_pointed_out(office: Office) -> None:
    first = await office.lead()
    again = await office.do("leads.create", name="S Bell", phone="+61400123456", suburb="Clayton")
    assert again["same_phone"] == [first]


async def test_a_lead_that_was_taken_back_is_archived_and_can_return(office: Office) -> None:
    made = await office.do("leads.create", name="Sarah", phone="+61400123456", suburb="Clayton")
    lead_id = made["lead_id"]
    await office.do("leads.set_stage", lead_id=lead_id, stage="contacted")
    archived = await office.undo("leads.create", made)
    assert office.row("leads", lead_id)["stage"] == "archived"
    assert "is archived" in await office.refused("leads.set_stage", lead_id=lead_id, stage="won")
    restored = await office.undo("leads.archive", archived)
    assert restored["stage"] == "contacted"
    await office.undo("leads.restore", restored)
    assert office.row("leads", lead_id)["archived_because"] == "taken back"


async def test_leads_are_listed_by_stage_newest_first_and_bounded(office: Office) -> None:
    for number in range(3):
        office.now = office.now.replace(minute=number)
        await office.lead(name=f"Lead {number}")
    listed = await office.do("leads.list_by_stage", stage="new", limit=2)
    assert [lead["name"] for lead in listed["leads"]] == ["Lead 2", "Lead 1"]
    assert listed["count"] == 3
    assert (await office.do("leads.list_by_stage", stage="won"))["leads"] == []


async def test_lead_is_shown_with_its_documents(office: Office) -> None:
    lead_id = await office.lead()
    await office.do("os.create_task", title="ring her", lead_id=lead_id)
    note = await office.do("os.create_note", text="has a dog", lead_id=lead_id)
    await office.do("os.remove_note", note_id=note["note_id"])
    await office.quote(lead_id=lead_id)
    shown = (await office.do("leads.get", lead_id=lead_id))["lead"]
    assert [task["title"] for task in shown["tasks"]] == ["ring her"]
    assert [quote["total"] for quote in shown["quotes"]] == [1850.0]
    assert shown["notes"] == []


async def test_leads_are_found_by_name_number_mail_and_whole_suburb(office: Office) -> None:
    sarah = await office.lead(email="Sarah@Example.com")
    tom = await office.lead(name="Tom Nguyen", phone="+61411222333", suburb="Clayton South")

    async def found(**arguments: str) -> list[str]:
        return [lead["id"] for lead in (await office.do("leads.find", **arguments))["leads"]]

    assert await found(query="NGUYEN") == [tom]
    assert await found(phone="+61400123456") == [sarah]
    assert await found(email="sarah@example.com") == [sarah]
    assert await found(suburb="clayton") == [sarah]
    assert sorted(await found(query="clayton")) == sorted([sarah, tom])
    assert await found(query="bell", suburb="Clayton South") == []


async def test_details_are_changed_and_changed_back(office: Office) -> None:
    lead_id = await office.lead(address="1 High St")
    changed = await office.do(
        "leads.update", lead_id=lead_id, email="s@example.com", address="", phone="+61400123456"
    )
    assert changed["changed"] == {"email": "s@example.com", "address": None}
    await office.undo("leads.update", changed)
    row = office.row("leads", lead_id)
    assert (row["email"], row["address"]) == (None, "1 High St")


async def test_what_changes_nothing_is_refused(office: Office) -> None:
    lead_id = await office.lead()
    assert "already" in await office.refused("leads.update", lead_id=lead_id, suburb="Clayton")
    assert "already" in await office.refused("leads.set_stage", lead_id=lead_id, stage="new")


async def test_a_stage_is_set_and_set_back(office: Office) -> None:
    lead_id = await office.lead()
    moved = await office.do("leads.set_stage", lead_id=lead_id, stage="lost")
    assert moved["stage_before"] == "new"
    await office.undo("leads.set_stage", moved)
    assert office.row("leads", lead_id)["stage"] == "new"


async def test_the_archive_is_entered_by_its_own_door(office: Office) -> None:
    lead_id = await office.lead()
    words = await office.refused("leads.set_stage", lead_id=lead_id, stage="archived")
    assert "leads.archive" in words
    assert "not archived" in await office.refused("leads.restore", lead_id=lead_id)


async def test_a_lead_is_given_to_somebody_and_to_nobody_again(office: Office) -> None:
    lead_id = await office.lead()
    given = await office.do("leads.assign", lead_id=lead_id, assignee="Kylie")
    assert (given["assignee"], given["assignee_before"]) == ("Kylie", None)
    back = await office.undo("leads.assign", given)
    assert back["assignee"] is None


async def test_a_lead_that_nobody_has_is_named_with_the_way_to_find_it(office: Office) -> None:
    await office.lead()
    words = await office.refused("leads.get", lead_id="abc123")
    assert words == "there is no lead 'abc123'; look for its id with leads.find"
