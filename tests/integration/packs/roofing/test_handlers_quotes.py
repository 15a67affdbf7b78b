"""Quotes, and the jobs and invoices that come of them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.packs.roofing.office import Office, open_office


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return open_office(tmp_path)


async def test_lines_add_up_to_the_cent(office: Office) -> None:
    quote_id = await office.quote()
    added = await office.do(
        "quote.add_line", quote_id=quote_id, description="tiles", unit_price=3.35, quantity=2.5
    )
    assert (added["line_total"], added["total"]) == (8.38, 1858.38)
    shown = (await office.do("os.get_quote", quote_id=quote_id))["quote"]
    assert [line["unit_price"] for line in shown["lines"]] == [1850.0, 3.35]
    assert shown["total"] == 1858.38


async def test_a_line_is_taken_off_and_put_back(office: Office) -> None:
    quote_id = await office.quote()
    added = await office.do(
        "quote.add_line", quote_id=quote_id, description="tiles", unit_price=3.35, quantity=10
    )
    removed = await office.undo("quote.add_line", added)
    assert removed["total"] == 1850.0
    again = await office.undo("quote.remove_line", removed)
    assert again["total"] == 1883.5


async def test_a_line_of_another_quote_is_not_removed(office: Office) -> None:
    one, other = await office.quote(), await office.quote()
    added = await office.do("quote.add_line", quote_id=one, description="x", unit_price=1)
    words = await office.refused("quote.remove_line", quote_id=other, line_id=added["line_id"])
    assert one in words


@pytest.mark.parametrize("price", [0.001, 19.999])
async def test_parts_of_a_cent_are_refused(office: Office, price: float) -> None:
    quote_id = await office.quote()
    words = await office.refused(
        "quote.add_line", quote_id=quote_id, description="x", unit_price=price
    )
    assert "two decimals" in words


async def test_a_quote_without_lines_cannot_be_finalized(office: Office) -> None:
    made = await office.do("quote.create", lead_id=await office.lead())
    words = await office.refused("quote.finalize", quote_id=made["quote_id"])
    assert "has no lines" in words


async def test_a_final_quote_is_fixed_until_it_is_reopened(office: Office) -> None:
    lead_id = await office.lead()
    quote_id = await office.quote(lead_id=lead_id)
    final = await office.do("quote.finalize", quote_id=quote_id)
    assert office.row("leads", lead_id)["stage"] == "quoted"
    words = await office.refused("quote.add_line", quote_id=quote_id, description="x", unit_price=1)
    assert "is final, not draft" in words
    back = await office.undo("quote.finalize", final)
    assert back["status"] == "draft"
    assert office.row("quotes", quote_id)["finalized_at"] is None


async def test_only_a_final_quote_is_accepted_and_wins_the_lead(office: Office) -> None:
    lead_id = await office.lead()
    quote_id = await office.quote(lead_id=lead_id)
    assert "is draft, not final" in await office.refused("quote.accept", quote_id=quote_id)
    await office.do("quote.finalize", quote_id=quote_id)
    accepted = await office.do("quote.accept", quote_id=quote_id)
    assert (accepted["status"], accepted["total"]) == ("accepted", 1850.0)
    assert office.row("leads", lead_id)["stage"] == "won"
    back = await office.undo("quote.accept", accepted)
    assert back["status"] == "final"
    assert office.row("leads", lead_id)["stage"] == "quoted"


async def test_a_declined_quote_comes_back_as_it_was(office: Office) -> None:
    quote_id = await office.quote(upto="final")
    declined = await office.do("quote.decline", quote_id=quote_id, reason="too dear")
    assert declined["status_before"] == "final"
    assert (await office.undo("quote.decline", declined))["status"] == "final"


async def test_a_quote_rests_on_an_inspection_of_its_own_lead(office: Office) -> None:
    other = await office.do(
        "inspection.create", lead_id=await office.lead(), site_address="1 High St"
    )
    words = await office.refused(
        "quote.create", lead_id=await office.lead(), inspection_id=other["inspection_id"]
    )
    assert "belongs to lead" in words


async def test_two_lines_at_once_both_count(office: Office) -> None:
    quote_id = await office.quote()
    await asyncio.gather(
        *(
            replace(office, calls=100 + number).once(
                "quote.add_line", quote_id=quote_id, description=f"line {number}", unit_price=1
            )
            for number in range(2)
        )
    )
    assert (await office.do("os.get_quote", quote_id=quote_id))["total"] == 1852.0


async def test_a_job_needs_an_accepted_quote(office: Office) -> None:
    quote_id = await office.quote(upto="final")
    words = await office.refused("job.create", quote_id=quote_id)
    assert words == (
        f"quote {quote_id!r} is final, not accepted; "
        "a job needs an accepted quote; see quote.accept"
    )


async def test_a_quote_has_one_job(office: Office) -> None:
    quote_id = await office.quote(upto="accepted")
    made = await office.do("job.create", quote_id=quote_id, start_on="2027-05-17")
    assert made["status"] == "scheduled"
    assert made["job_id"] in await office.refused("job.create", quote_id=quote_id)
    assert made["job_id"] in await office.refused("quote.reopen", quote_id=quote_id)


async def test_a_job_is_moved_and_moved_back(office: Office) -> None:
    job_id = await office.job()
    moved = await office.do("job.schedule", job_id=job_id, date="2027-06-21", crew="Stavros")
    assert (moved["date_before"], moved["status"]) == (None, "scheduled")
    back = await office.undo("job.schedule", moved)
    assert (back["date"], back["crew"], back["status"]) == (None, None, "created")
    assert "is not a date" in await office.refused("job.schedule", job_id=job_id, date="2027-13-01")


async def test_a_job_is_started_completed_and_taken_back_step_by_step(office: Office) -> None:
    job_id = await office.job()
    await office.do("job.start", job_id=job_id)
    assert "is started" in await office.refused("job.schedule", job_id=job_id, date="2027-06-21")
    done = await office.do("job.complete", job_id=job_id)
    assert (await office.undo("job.complete", done))["status"] == "started"
    assert (await office.do("job.reopen", job_id=job_id))["status"] == "created"
    row = office.row("jobs", job_id)
    assert (row["started_at"], row["completed_at"]) == (None, None)
    assert "is created" in await office.refused("job.reopen", job_id=job_id)


async def test_a_cancelled_job_comes_back_as_it_was(office: Office) -> None:
    job_id = await office.job()
    await office.do("job.start", job_id=job_id)
    cancelled = await office.do("job.cancel", job_id=job_id, reason="house sold")
    assert "is cancelled" in await office.refused("job.complete", job_id=job_id)
    back = await office.undo("job.cancel", cancelled)
    assert back["status"] == "started"
    await office.undo("job.reinstate", back)
    assert office.row("jobs", job_id)["cancelled_because"] == "house sold"


async def test_a_job_does_not_come_back_beside_another_for_its_quote(office: Office) -> None:
    quote_id = await office.quote(upto="accepted")
    first = await office.do("job.create", quote_id=quote_id)
    await office.undo("job.create", first)
    second = await office.do("job.create", quote_id=quote_id)
    assert second["job_id"] in await office.refused("job.reinstate", job_id=first["job_id"])


async def test_only_finished_work_is_billed_and_only_once(office: Office) -> None:
    job_id = await office.job()
    assert "only finished work" in await office.refused("invoice.create", job_id=job_id)
    await office.do("job.complete", job_id=job_id)
    part = await office.do("invoice.create", job_id=job_id, amount=850, due="2026-12-01")
    assert (part["amount"], part["due"]) == (850.0, "2026-12-01")
    rest = await office.do("invoice.create", job_id=job_id)
    assert (rest["amount"], rest["due"]) == (1000.0, "2026-11-30")
    assert "billed in full" in await office.refused("invoice.create", job_id=job_id)
    assert "is billed by invoice" in await office.refused("job.reopen", job_id=job_id)


async def test_payments_count_down_what_is_owed(office: Office) -> None:
    invoice_id = await office.invoice()
    first = await office.do("invoice.record_payment", invoice_id=invoice_id, amount=1000.5)
    assert (first["balance"], first["status"]) == (849.5, "open")
    words = await office.refused("invoice.record_payment", invoice_id=invoice_id, amount=849.51)
    assert "$849.51 is more than the $849.50 still owed" in words
    last = await office.do(
        "invoice.record_payment", invoice_id=invoice_id, amount=849.5, method="card"
    )
    assert (last["balance"], last["status"]) == (0.0, "paid")
    assert "is paid" in await office.refused(
        "invoice.record_payment", invoice_id=invoice_id, amount=1
    )


async def test_a_payment_is_reversed_and_recorded_again(office: Office) -> None:
    invoice_id = await office.invoice()
    paid = await office.do(
        "invoice.record_payment", invoice_id=invoice_id, amount=1850, reference="TX 1"
    )
    back = await office.undo("invoice.record_payment", paid)
    assert (back["balance"], office.row("invoices", invoice_id)["status"]) == (1850.0, "open")
    again = await office.undo("invoice.reverse_payment", back)
    assert again["status"] == "paid"
    assert office.row("payments", again["payment_id"])["reference"] == "TX 1"


async def test_an_invoice_with_money_on_it_is_not_voided(office: Office) -> None:
    invoice_id = await office.invoice()
    paid = await office.do("invoice.record_payment", invoice_id=invoice_id, amount=50)
    words = await office.refused("invoice.void", invoice_id=invoice_id, reason="twice")
    assert "invoice.reverse_payment" in words
    await office.undo("invoice.record_payment", paid)
    void = await office.do("invoice.void", invoice_id=invoice_id, reason="twice")
    assert "is void" in await office.refused(
        "invoice.record_payment", invoice_id=invoice_id, amount=1
    )
    back = await office.undo("invoice.void", void)
    assert (back["status"], back["balance"]) == ("open", 1850.0)
    await office.undo("invoice.reinstate", back)
    assert office.row("invoices", invoice_id)["voided_because"] == "twice"


async def test_one_call_made_many_times_at_once_counts_once(office: Office) -> None:
    invoice_id = await office.invoice()
    made = await asyncio.gather(
        *(
            replace(office).once("invoice.record_payment", invoice_id=invoice_id, amount=1850)
            for _ in range(8)
        )
    )
    assert len({payment["payment_id"] for payment in made}) == 1
    assert len(office.content()["payments"]) == 1
