"""Tasks, notes, lists, figures, health and snapshots."""

from __future__ import annotations

import hashlib
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.integration.packs.roofing.office import Office, open_office


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return open_office(tmp_path)


async def a_task(office: Office, title: str = "order tiles", **more: str) -> str:
    return str((await office.do("os.create_task", title=title, **more))["task_id"])


async def test_a_task_is_done_reopened_and_scrapped(office: Office) -> None:
    task_id = await a_task(office, due="2027-02-11", lead_id=await office.lead())
    done = await office.do("os.complete_task", task_id=task_id)
    assert office.row("tasks", task_id)["completed_at"] is not None
    assert "is done, not open" in await office.refused("os.cancel_task", task_id=task_id)
    await office.undo("os.complete_task", done)
    scrapped = await office.do("os.cancel_task", task_id=task_id)
    assert (await office.undo("os.cancel_task", scrapped))["status"] == "open"


async def test_a_task_is_given_to_somebody_and_back(office: Office) -> None:
    task_id = await a_task(office)
    given = await office.do("os.assign_task", task_id=task_id, assignee="Stavros")
    assert (await office.undo("os.assign_task", given))["assignee"] is None


async def test_tasks_are_listed_with_the_next_due_first(office: Office) -> None:
    await a_task(office, "whenever")
    await a_task(office, "later", due="2027-02-11", assignee="Kylie Jones")
    await a_task(office, "sooner", due="2027-01-05")
    await office.do("os.complete_task", task_id=await a_task(office, "over"))

    async def titles(**arguments: str) -> list[str]:
        listed = await office.do("os.list_tasks", **arguments)
        return [task["title"] for task in listed["tasks"]]

    assert await titles() == ["sooner", "later", "whenever"]
    assert await titles(assignee="kylie") == ["later"]
    assert await titles(status="done") == ["over"]
    assert len(await titles(status="all")) == 4


async def test_a_task_for_a_lead_nobody_has_is_refused(office: Office) -> None:
    await office.lead()
    assert "no lead" in await office.refused("os.create_task", title="x", lead_id="nobody")


async def test_notes_are_found_by_all_their_words_until_they_are_removed(office: Office) -> None:
    lead_id = await office.lead()
    kept = await office.do("os.create_note", text="Gate code is 4417", lead_id=lead_id)
    await office.do("os.create_note", text="The gate sticks")
    found = await office.do("os.search_notes", query="code gate")
    assert [note["id"] for note in found["notes"]] == [kept["note_id"]]
    assert (await office.do("os.search_notes", query="GATE"))["count"] == 2
    assert (await office.do("os.search_notes", query="100%"))["count"] == 0
    removed = await office.undo("os.create_note", kept)
    assert (await office.do("os.search_notes", query="code"))["count"] == 0
    assert "already" in await office.refused("os.remove_note", note_id=kept["note_id"])
    again = await office.undo("os.remove_note", removed)
    assert (again["text"], again["lead_id"]) == ("Gate code is 4417", lead_id)


async def test_lists_show_what_has_the_status(office: Office) -> None:
    invoice_id = await office.invoice()
    lead_id = await office.lead()
    draft = await office.quote(lead_id=lead_id)
    await office.do("inspection.schedule", lead_id=lead_id, date="2027-04-12")
    quotes = await office.do("os.list_quotes", status="draft")
    assert [quote["id"] for quote in quotes["quotes"]] == [draft]
    assert (await office.do("os.list_quotes"))["count"] == 2
    assert (await office.do("os.list_quotes", lead_id=lead_id))["count"] == 1
    assert (await office.do("os.list_jobs", status="completed"))["count"] == 1
    assert (await office.do("os.list_jobs", status="cancelled"))["count"] == 0
    assert (await office.do("os.list_inspections", status="scheduled"))["count"] == 1
    invoices = await office.do("os.list_invoices")
    assert [invoice["id"] for invoice in invoices["invoices"]] == [invoice_id]
    assert invoices["total"] == 1850.0


async def test_an_invoice_is_overdue_the_day_after_it_was_due(office: Office) -> None:
    await office.invoice()
    office.now = datetime(2026, 11, 30, 12, tzinfo=UTC)
    assert (await office.do("os.list_invoices", status="overdue"))["count"] == 0
    # In Melbourne the next day has begun.
    office.now = datetime(2026, 11, 30, 13, 30, tzinfo=UTC)
    assert (await office.do("os.list_invoices", status="overdue"))["count"] == 1


async def test_job_and_an_invoice_are_shown_with_their_documents(office: Office) -> None:
    invoice_id = await office.invoice()
    await office.do("invoice.record_payment", invoice_id=invoice_id, amount=50, method="cash")
    shown = await office.do("os.get_invoice", invoice_id=invoice_id)
    assert (shown["amount"], shown["balance"]) == (1850.0, 1800.0)
    assert [payment["method"] for payment in shown["invoice"]["payments"]] == ["cash"]
    job = (await office.do("os.get_job", job_id=shown["invoice"]["job_id"]))["job"]
    assert job["quote"]["total"] == 1850.0
    assert [invoice["balance"] for invoice in job["invoices"]] == [1800.0]


async def test_the_figures_are_those_of_the_span(office: Office) -> None:
    invoice_id = await office.invoice()
    await office.do("invoice.record_payment", invoice_id=invoice_id, amount=850)
    assert await office.do("os.revenue_report") == {
        "from": "2026-11-01",
        "to": "2026-11-16",
        "quoted": 1850.0,
        "won": 1850.0,
        "invoiced": 1850.0,
        "paid": 850.0,
        "outstanding": 1000.0,
        "verification": [],
    }
    later = await office.do("os.revenue_report", **{"from": "2026-11-17", "to": "2026-12-31"})
    assert (later["quoted"], later["paid"], later["outstanding"]) == (0.0, 0.0, 1000.0)
    span = {"from": "2027-01-01", "to": "2026-01-01"}
    assert "swap the days" in await office.refused("os.revenue_report", **span)


async def test_recent_activity_names_what_was_done_newest_first(office: Office) -> None:
    lead_id = await office.lead()
    office.now = office.now.replace(minute=45)
    await office.do("leads.assign", lead_id=lead_id, assignee="Kylie")
    response = await office.do("os.recent_activity", limit=2)
    assert [(act["tool"], act["lead_id"]) for act in response["activity"]] == [
        ("leads.assign", lead_id),
        ("leads.create", lead_id),
    ]


async def test_reading_writes_nothing(office: Office) -> None:
    lead_id = await office.lead()
    before = office.content()
    for tool in office.pack.registry.tools:
        if tool.tier == 0 and not tool.required:
            await office.do(tool.name)
    await office.do("leads.get", lead_id=lead_id)
    await office.do("leads.find", query="sarah")
    assert office.content() == before


async def test_the_health_check_says_what_works_and_what_is_not_set(office: Office) -> None:
    response = await office.do("os.health_check")
    assert (response["healthy"], response["backend"]) == (True, "sqlite")
    assert "ROOFING_SMTP_HOST" in response["checks"]["mail"]["missing"]


async def test_a_database_that_cannot_be_used_fails_the_health_check(tmp_path: Path) -> None:
    office = open_office(tmp_path, {"ROOFING_DATABASE_URL": "mysql://u:secret-word@x/y"})
    words = await office.broken("os.health_check")
    assert "must begin with postgresql://" in words
    assert "secret-word" not in words
    broken = open_office(tmp_path)
    broken.state.mkdir(exist_ok=True)
    (broken.state / "roofing.db").write_bytes(b"not a database at all" * 100)
    assert "is not a readable database" in await broken.broken("os.health_check")


async def test_a_part_that_is_set_up_by_half_is_not_healthy(tmp_path: Path) -> None:
    office = open_office(tmp_path, {"ROOFING_SMTP_HOST": "mail.example"})
    response = await office.do("os.health_check")
    assert response["healthy"] is False
    assert response["checks"]["mail"]["missing"] == ["ROOFING_SMTP_FROM"]


async def test_a_snapshot_is_a_whole_copy_and_can_be_removed(office: Office) -> None:
    lead_id = await office.lead()
    made = await office.do("os.create_snapshot", label="before price rise")
    file = office.state / "snapshots" / made["file_name"]
    assert hashlib.sha256(file.read_bytes()).hexdigest() == made["sha256"]
    copy = sqlite3.connect(file)
    assert copy.execute("SELECT id FROM leads").fetchall() == [(lead_id,)]
    copy.close()
    listed = await office.do("os.list_snapshots")
    assert [snapshot["label"] for snapshot in listed["snapshots"]] == ["before price rise"]
    await office.undo("os.create_snapshot", made)
    assert not file.exists()
    assert (await office.do("os.list_snapshots"))["count"] == 0


async def test_a_time_zone_nobody_knows_is_named(tmp_path: Path) -> None:
    office = open_office(tmp_path, {"ROOFING_TIME_ZONE": "Mars/Olympus"})
    assert "ROOFING_TIME_ZONE" in await office.broken("os.revenue_report")
