"""Taking back: never what came later, and never found impossible when it is too late."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.packs.roofing.office import Office, open_office


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return open_office(tmp_path)


Made = tuple[str, dict[str, Any]]
"""The tool whose call is to be taken back, and what it gave."""


async def a_stage(office: Office) -> Made:
    lead_id = await office.lead()
    first = await office.once("leads.set_stage", lead_id=lead_id, stage="contacted")
    await office.once("leads.set_stage", lead_id=lead_id, stage="inspection")
    return "leads.set_stage", first


async def a_phone(office: Office) -> Made:
    lead_id = await office.lead()
    first = await office.once("leads.update", lead_id=lead_id, phone="+61400000001", suburb="Noble")
    await office.once("leads.update", lead_id=lead_id, phone="+61400000002")
    return "leads.update", first


async def an_assignee(office: Office) -> Made:
    lead_id = await office.lead()
    first = await office.once("leads.assign", lead_id=lead_id, assignee="Kylie")
    await office.once("leads.assign", lead_id=lead_id, assignee="Dave")
    return "leads.assign", first


async def a_restored_lead(office: Office) -> Made:
    lead_id = await office.lead()
    await office.once("leads.archive", lead_id=lead_id)
    first = await office.once("leads.restore", lead_id=lead_id)
    await office.once("leads.set_stage", lead_id=lead_id, stage="won")
    return "leads.restore", first


async def a_task_given(office: Office) -> Made:
    task_id = (await office.once("os.create_task", title="order tiles"))["task_id"]
    first = await office.once("os.assign_task", task_id=task_id, assignee="Kylie")
    await office.once("os.assign_task", task_id=task_id, assignee="Dave")
    return "os.assign_task", first


async def a_task_done(office: Office) -> Made:
    task_id = (await office.once("os.create_task", title="order tiles"))["task_id"]
    first = await office.once("os.complete_task", task_id=task_id)
    await office.once("os.reopen_task", task_id=task_id)
    await office.once("os.cancel_task", task_id=task_id)
    return "os.complete_task", first


async def a_booking(office: Office) -> Made:
    first = await office.once(
        "inspection.schedule", lead_id=await office.lead(), date="2026-11-20", site_address="1 A St"
    )
    items = [{"kind": "defect", "label": "cracked tile", "severity": "low"}]
    await office.once("inspection.add_items", inspection_id=first["inspection_id"], items=items)
    return "inspection.schedule", first


async def a_new_quote(office: Office) -> Made:
    first = await office.once("quote.create", lead_id=await office.lead())
    quote_id = first["quote_id"]
    await office.once("quote.add_line", quote_id=quote_id, description="tiles", unit_price=5)
    await office.once("quote.finalize", quote_id=quote_id)
    return "quote.create", first


async def a_final_quote(office: Office) -> Made:
    quote_id = await office.quote()
    first = await office.once("quote.finalize", quote_id=quote_id)
    await office.once("quote.accept", quote_id=quote_id)
    return "quote.finalize", first


async def a_new_job(office: Office) -> Made:
    first = await office.once("job.create", quote_id=await office.quote(upto="accepted"))
    await office.once("job.start", job_id=first["job_id"])
    return "job.create", first


async def a_started_job(office: Office) -> Made:
    job_id = await office.job()
    first = await office.once("job.start", job_id=job_id)
    await office.once("job.complete", job_id=job_id)
    return "job.start", first


async def a_day(office: Office) -> Made:
    job_id = await office.job()
    first = await office.once("job.schedule", job_id=job_id, date="2026-11-20")
    await office.once("job.schedule", job_id=job_id, date="2026-11-21")
    return "job.schedule", first


async def a_crew(office: Office) -> Made:
    job_id = await office.job()
    first = await office.once("job.schedule", job_id=job_id, date="2026-11-20", crew="A")
    await office.once("job.schedule", job_id=job_id, date="2026-11-20", crew="B")
    return "job.schedule", first


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("happened", "words"),
    [
        (a_stage, "is inspection, not contacted any more"),
        (a_phone, "is +61400000002, not +61400000001 any more"),
        (an_assignee, "is Dave, not Kylie any more"),
        (a_restored_lead, "is won, not new any more"),
        (a_task_given, "is Dave, not Kylie any more"),
        (a_task_done, "is cancelled, not done any more"),
        (a_booking, "is open, not scheduled any more"),
        (a_new_quote, "is final, not draft any more"),
        (a_final_quote, "is accepted, not final any more"),
        (a_new_job, "is started, not created any more"),
        (a_started_job, "is completed, not started any more"),
        (a_day, "is 2026-11-21, not 2026-11-20 any more"),
        (a_crew, "is B, not A any more"),
    ],
)
async def test_what_came_later_is_not_overwritten_by_taking_back_what_came_before(
    office: Office, happened: Callable[[Office], Awaitable[Made]], words: str
) -> None:
    tool, first = await happened(office)
    model = office.pack.tool(tool)
    assert model is not None
    assert model.undo is not None
    assert words in await office.refused(model.undo, **first["undo"])


async def test_the_last_change_is_taken_back_and_put_back_again(office: Office) -> None:
    lead_id = await office.lead()
    changed = await office.do("leads.update", lead_id=lead_id, phone="+61400000001")
    back = await office.undo("leads.update", changed)
    assert office.row("leads", lead_id)["phone"] == "+61400123456"
    await office.undo("leads.update", back)
    assert office.row("leads", lead_id)["phone"] == "+61400000001"


async def test_what_is_expected_is_never_looked_for_in_words_nor_open_to_more(
    office: Office,
) -> None:
    for tool in office.pack.registry.tools:
        expected = tool.properties.get("expected")
        if expected is not None:
            assert not {"x-kind", "x-ask", "enum", "format"} & set(expected)
            assert expected["additionalProperties"] is False
            assert "expected" not in tool.required


def written_by_others(office: Office, **values: str | None) -> None:
    """Put values on the one lead that no tool would write."""
    with sqlite3.connect(office.state / "roofing.db") as connection:
        for column, value in values.items():
            connection.execute(f"UPDATE leads SET {column} = ?", (value,))
    connection.close()


async def test_details_that_were_empty_are_filled_and_emptied_again(office: Office) -> None:
    lead_id = await office.lead()
    empty = {"phone": None, "suburb": None, "email": None, "address": None, "postcode": None}
    written_by_others(office, **empty)
    changed = await office.do(
        "leads.update",
        lead_id=lead_id,
        phone="+61400123456",
        suburb="Clayton",
        email="s@example.com",
        address="1 High St",
        postcode="3168",
    )
    await office.undo("leads.update", changed)
    row = office.row("leads", lead_id)
    assert {name: row[name] for name in empty} == empty


async def test_a_value_that_no_tool_would_write_can_be_replaced_though_not_put_back(
    office: Office,
) -> None:
    lead_id = await office.lead()
    written_by_others(office, phone="0400 123 456 (after 5)", assignee="K" * 200)
    changed = await office.do("leads.update", lead_id=lead_id, phone="+61400123456")
    given = await office.do("leads.assign", lead_id=lead_id, assignee="Kylie")
    assert (changed["undo"], given["undo"]) == (None, None)
    row = office.row("leads", lead_id)
    assert (row["phone"], row["assignee"]) == ("+61400123456", "Kylie")


async def test_a_job_goes_back_to_the_day_it_had_though_that_is_over(office: Office) -> None:
    job_id = await office.job()
    await office.once("job.schedule", job_id=job_id, date="2026-11-17")
    office.now = office.now.replace(day=20)
    moved = await office.once("job.schedule", job_id=job_id, date="2026-11-25")
    assert (await office.undo("job.schedule", moved))["date"] == "2026-11-17"
