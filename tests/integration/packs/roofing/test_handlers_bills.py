"""Bills of a job: never more than its quote, however many are written at once, wherever records are."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from packs.roofing.database import Conflict, open_database
from packs.roofing.database.sqlite import SqliteBackend
from packs.roofing.handlers import invoices, jobs

from podium.core.errors import ToolBroke
from tests.integration.packs.roofing.office import Office, open_office
from tests.integration.packs.roofing.postgrest import postgrest
from tests.integration.packs.roofing.test_database import run_migrations_by_hand
from tests.soaking import in_soak
from tests.unit.packs.roofing.roofing_harness import FOLDER, pack_scope


@pytest.fixture(params=["sqlite", *map(in_soak, ("postgresql", "supabase"))])
def settings(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """Those that name a place for the records."""
    if request.param == "sqlite":
        yield {}
        return
    url = request.getfixturevalue("postgres_url")
    if request.param == "postgresql":
        yield {"ROOFING_DATABASE_URL": url}
        return
    run_migrations_by_hand(url)
    with postgrest(url) as project:
        yield {"SUPABASE_URL": project.url, "SUPABASE_SERVICE_ROLE_KEY": project.key}


async def at_once(
    office: Office, times: int, tool: str, **arguments: Any
) -> tuple[list[dict[str, Any]], list[str]]:
    """Results and refusals of so many calls, each under a key of its own."""

    async def one(number: int) -> dict[str, Any] | str:
        try:
            return await replace(office, calls=100 + number).once(tool, **arguments)
        except ToolBroke as error:
            return str(error)

    output = await asyncio.gather(*(one(number) for number in range(times)))
    made = [item for item in output if isinstance(item, dict)]
    return made, [item for item in output if isinstance(item, str)]


async def bills(office: Office, settings: dict[str, str]) -> list[int]:
    """Cents of each invoice that counts."""
    async with open_database(pack_scope(office.state, settings)) as db:
        found = await db.rows("invoices", {"status": ("open", "paid")})
    return [row["amount_cents"] for row in found]


async def test_of_eight_who_bill_a_job_at_once_one_does(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    office = open_office(tmp_path, settings)
    job_id = await office.job(completed=True)
    made, refused = await at_once(office, 8, "invoice.create", job_id=job_id)
    assert [item["amount"] for item in made] == [1850.0]
    assert await bills(office, settings) == [185_000]
    assert len(refused) == 7
    assert all("is billed in full" in words for words in refused)


async def test_parts_that_are_billed_at_once_all_count_and_never_exceed_the_whole(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    office = open_office(tmp_path, settings)
    job_id = await office.job(completed=True)
    made, refused = await at_once(office, 5, "invoice.create", job_id=job_id, amount=500)
    assert [item["amount"] for item in made] == [500.0] * 3
    assert await bills(office, settings) == [50_000] * 3
    assert all("is more than the $350.00 of quote" in words for words in refused)


async def test_an_invoice_is_not_reinstated_beside_the_one_that_took_its_place(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    office = open_office(tmp_path, settings)
    job_id = await office.job(completed=True)
    first = await office.once("invoice.create", job_id=job_id)
    void = await office.once("invoice.void", invoice_id=first["invoice_id"], reason="typo")
    second = await office.once("invoice.create", job_id=job_id, amount=1000)
    words = await office.broken("invoice.reinstate", **void["undo"])
    assert "$1,850.00 is more than the $850.00 of quote" in words
    await office.once("invoice.void", invoice_id=second["invoice_id"], reason="typo")
    made, refused = await at_once(office, 3, "invoice.reinstate", **void["undo"])
    assert (len(made), len(refused)) == (1, 2)
    assert await bills(office, settings) == [185_000]


async def test_what_was_decided_before_a_job_was_billed_is_not_done_afterwards(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    office = open_office(tmp_path, settings)
    job_id = await office.job(completed=True)
    void = await office.once("invoice.create", job_id=job_id)
    await office.once("invoice.void", invoice_id=void["invoice_id"], reason="typo")
    scope = pack_scope(office.state, settings)
    async with open_database(scope) as db:
        decided = [
            await inspect.unwrap(jobs.reopen)({"job_id": job_id}, scope, db),
            await inspect.unwrap(invoices.reinstate)(void["undo"], scope, db),
        ]
        await office.once("invoice.create", job_id=job_id)
        for done in decided:
            with pytest.raises(Conflict, match="bills_version"):
                await db.apply("later", done.changes, done.result)
    shown = await office.once("os.get_job", job_id=job_id)
    assert (shown["status"], len(await bills(office, settings))) == ("completed", 1)
    assert "bills_version" not in shown["job"]


async def test_more_than_the_quote_cannot_be_billed(tmp_path: Path) -> None:
    office = open_office(tmp_path)
    job_id = await office.job(completed=True)
    words = await office.refused("invoice.create", job_id=job_id, amount=1850.01)
    assert "$1,850.01 is more than the $1,850.00 of quote" in words
    assert "bill at most that" in words


async def test_twelve_lines_added_at_once_all_count(tmp_path: Path) -> None:
    office = open_office(tmp_path)
    quote_id = await office.quote()
    line = {"quote_id": quote_id, "description": "tile", "unit_price": 1}
    made, refused = await at_once(office, 12, "quote.add_line", **line)
    assert (len(made), refused) == (12, [])
    assert (await office.once("os.get_quote", quote_id=quote_id))["total"] == 1862.0


@pytest.mark.sample(1)
@pytest.mark.parametrize(("price", "quantity"), [(0.01, 0.001), (0.01, 0.49), (1, 0.004)])
async def test_a_line_that_comes_to_nothing_is_refused(
    tmp_path: Path, price: float, quantity: float
) -> None:
    office = open_office(tmp_path)
    quote_id = await office.quote()
    line = {"description": "tile", "unit_price": price, "quantity": quantity}
    assert "is less than a cent" in await office.refused(
        "quote.add_line", quote_id=quote_id, **line
    )


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("inspection.schedule", {"date": "2026-11-15"}),
        ("job.create", {"start_on": "1999-01-01"}),
        ("job.schedule", {"date": "2026-11-15"}),
        ("invoice.create", {"due": "1999-01-01"}),
        ("os.create_task", {"title": "ring Bob", "due": "2026-11-15"}),
    ],
)
async def test_a_day_that_is_over_cannot_be_planned_for(
    tmp_path: Path, tool: str, arguments: dict[str, str]
) -> None:
    office = open_office(tmp_path)
    await office.lead()
    named = await _named(office, tool)
    words = await office.refused(tool, **named, **arguments)
    assert "is in the past, today is 2026-11-16; give a later day" in words
    [day] = [name for name in arguments if name != "title"]
    await office.once(tool, **named, **{**arguments, day: "2026-11-16"})


async def _named(office: Office, tool: str) -> dict[str, str]:
    """Record that the tool is used on."""
    match tool:
        case "inspection.schedule":
            return {"lead_id": await office.lead()}
        case "job.create":
            return {"quote_id": await office.quote(upto="accepted")}
        case "job.schedule":
            return {"job_id": await office.job()}
        case "invoice.create":
            return {"job_id": await office.job(completed=True)}
        case _:
            return {}


@pytest.mark.soak
async def test_a_database_from_before_bills_were_guarded_is_brought_up_to_date(
    tmp_path: Path, postgres_url: str
) -> None:
    older = tmp_path / "older"
    for dialect, names in (("sqlite", "0001*"), ("postgresql", "000[12]*")):
        (older / dialect).mkdir(parents=True)
        for file in (FOLDER / "migrations" / dialect).glob(names):
            (older / dialect / file.name).write_text(file.read_text())
    state = tmp_path / "roofing"
    state.mkdir()
    SqliteBackend(state / "roofing.db", migrations=older).prepare()
    for file in sorted((older / "postgresql").iterdir()):
        with psycopg.connect(postgres_url) as connection:
            connection.execute(file.read_text().encode())
    for settings in ({}, {"ROOFING_DATABASE_URL": postgres_url}):
        office = open_office(tmp_path, settings)
        assert (await office.once("os.health_check"))["healthy"]
        job_id = await office.job(completed=True)
        assert (await office.once("invoice.create", job_id=job_id))["amount"] == 1850.0
    assert SqliteBackend(state / "roofing.db").migrations() == ["0001_tables", "0002_bills"]


async def test_project_lacking_the_newest_file_is_reported_with_its_name(
    tmp_path: Path, postgres_url: str
) -> None:
    for file in sorted((FOLDER / "migrations" / "postgresql").glob("000[12]*")):
        with psycopg.connect(postgres_url) as connection:
            connection.execute(file.read_text().encode())
    with postgrest(postgres_url) as project:
        settings = {"SUPABASE_URL": project.url, "SUPABASE_SERVICE_ROLE_KEY": project.key}
        office = open_office(tmp_path, settings)
        assert "run 0003_bills of the pack's migrations" in await office.broken("os.health_check")
        words = await office.broken("os.list_jobs")
    assert (
        "lacks some roofing tables: in its SQL editor, run the files of the pack's folder migrations/"
        in words
    )
