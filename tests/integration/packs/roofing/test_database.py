"""One suite for the three places in which the roofing records can be."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from packs.roofing.database import (
    TABLES,
    Between,
    Change,
    Conflict,
    Contains,
    Delete,
    Insert,
    Update,
    health,
    new_id,
    open_database,
    read_row,
    remove_snapshot,
    take_snapshot,
)

from podium.core.errors import ToolBroke
from podium.tools.packs import PackScope
from tests.integration.packs.roofing.postgrest import postgrest
from tests.unit.packs.roofing.roofing_harness import FOLDER, NOW, pack_scope

BACKENDS = ("sqlite", "postgresql", "supabase")


@pytest.fixture(params=BACKENDS)
def scope(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PackScope]:
    if request.param == "sqlite":
        yield pack_scope(tmp_path)
        return
    url = request.getfixturevalue("postgres_url")
    if request.param == "postgresql":
        yield pack_scope(tmp_path, {"ROOFING_DATABASE_URL": url})
        return
    run_migrations_by_hand(url)
    with postgrest(url) as project:
        # Smaller than what the tests list, so that pages are really put together.
        project.most_rows = 7
        settings = {"SUPABASE_URL": project.url, "SUPABASE_SERVICE_ROLE_KEY": project.key}
        yield pack_scope(tmp_path, settings)


def run_migrations_by_hand(url: str) -> None:
    """As a person does in Supabase's SQL editor."""
    for file in sorted((FOLDER / "migrations" / "postgresql").glob("*.sql")):
        with psycopg.connect(url) as connection:
            connection.execute(file.read_text().encode())


def lead(id: str = "lead_1", **values: Any) -> Insert:
    row = {"id": id, "name": "Sarah Chen", "phone": "+61400123456", "suburb": "Clayton", **values}
    return Insert("leads", row)


async def test_what_was_inserted_comes_back_as_plain_json(scope: PackScope) -> None:
    item = {
        "id": "item_1",
        "inspection_id": "insp_1",
        "kind": "defect",
        "label": "Cracked ridge “cap”",
        "value": 3,
        "severity": "high",
        "asset_ids": ["asset_1", "asset_2"],
    }
    inspection = {"id": "insp_1", "lead_id": "lead_1", "scheduled_on": "2026-11-20"}
    changes = [lead(), Insert("inspections", inspection), Insert("inspection_items", item)]
    async with open_database(scope) as db:
        await db.apply(scope.key, changes, {"lead_id": "lead_1"})
        found = await db.row("inspection_items", "item_1")
        visit = await db.row("inspections", "insp_1")
    assert found == {
        **dict.fromkeys(TABLES["inspection_items"].columns),
        **item,
        "value": 3.0,
        "position": 0,
        "created_at": "2026-11-16T09:30:00.000000+00:00",
        "updated_at": "2026-11-16T09:30:00.000000+00:00",
    }
    assert list(found) == list(TABLES["inspection_items"].columns)
    assert visit is not None
    assert (visit["scheduled_on"], visit["status"], visit["scope_version"]) == (
        "2026-11-20",
        "open",
        0,
    )
    json.dumps([found, visit], allow_nan=False)


async def test_a_key_is_applied_once_and_gives_its_result_again(scope: PackScope) -> None:
    async with open_database(scope) as db:
        assert await db.performed(scope.key) is None
        first = await db.apply(scope.key, [lead()], {"lead_id": "lead_1", "tags": [1, 2.5, None]})
        again = await db.apply(scope.key, [lead("lead_2")], {"lead_id": "lead_2"})
        assert first == again == {"lead_id": "lead_1", "tags": [1, 2.5, None]}
        assert await db.performed(scope.key) == first
        assert await db.count("leads") == 1
        record = await db.row("performed", scope.key)
    assert record is not None
    assert record["tool"] == "leads.create"


@pytest.mark.sample(1)
async def test_fifty_at_once_under_one_key_change_things_once(scope: PackScope) -> None:
    async def one(number: int) -> dict[str, Any]:
        async with open_database(scope) as db:
            return await db.apply(scope.key, [lead(f"lead_{number}")], {"lead": number})

    results = await asyncio.gather(*(one(number) for number in range(50)))
    async with open_database(scope) as db:
        rows = await db.rows("leads")
    assert len(rows) == 1
    assert {result["lead"] for result in results} == {int(rows[0]["id"].removeprefix("lead_"))}


@pytest.mark.sample(1)
async def test_fifty_at_once_who_expect_the_same_state_have_one_winner(scope: PackScope) -> None:
    async with open_database(scope) as db:
        await db.apply("first", [lead()], {})

    async def one(number: int) -> str:
        change = Update("leads", "lead_1", {"stage": "won", "notes": str(number)}, {"stage": "new"})
        try:
            async with open_database(scope) as db:
                await db.apply(f"key {number}", [change], {})
        except Conflict as conflict:
            return f"conflict in {conflict.column}"
        return "won"

    outcomes = await asyncio.gather(*(one(number) for number in range(50)))
    assert sorted(outcomes) == ["conflict in stage"] * 49 + ["won"]


async def test_a_change_that_does_not_fit_undoes_all_of_them(scope: PackScope) -> None:
    missing: list[Change] = [lead(), Update("leads", "abc123", {"stage": "won"})]
    async with open_database(scope) as db:
        with pytest.raises(Conflict, match=r"no row 'abc123' in leads; nothing was changed"):
            await db.apply(scope.key, missing, {})
        assert await db.performed(scope.key) is None
        assert await db.count("leads") == 0
        # The key is free again.
        assert await db.apply(scope.key, [lead()], {"ok": True}) == {"ok": True}


async def test_a_row_that_is_not_as_expected_is_left_alone(scope: PackScope) -> None:
    async with open_database(scope) as db:
        await db.apply("1", [lead()], {})
        change = Update("leads", "lead_1", {"stage": "won"}, {"stage": ["quoted", "inspection"]})
        with pytest.raises(Conflict, match="stage of 'lead_1' in leads is 'new', not 'quoted' or"):
            await db.apply("2", [change], {})
        with pytest.raises(Conflict, match="assignee of 'lead_1' in leads is None, not 'Kim'"):
            await db.apply("3", [Delete("leads", "lead_1", {"assignee": "Kim"})], {})
        row = await db.row("leads", "lead_1")
        assert row is not None
        held = {"stage": ["new", "contacted"], "assignee": None, "updated_at": row["updated_at"]}
        await db.apply("4", [Update("leads", "lead_1", {"stage": "won"}, held)], {})
        won = await db.row("leads", "lead_1")
    assert won is not None
    assert won["stage"] == "won"


async def test_changes_of_one_call_see_one_another(scope: PackScope) -> None:
    task = Insert("tasks", {"id": "task_1", "title": "Call John", "lead_id": "lead_1"})
    done = Update("tasks", "task_1", {"status": "done"}, {"status": "open"})
    async with open_database(scope) as db:
        await db.apply(scope.key, [lead(), task, done, Delete("tasks", "task_1")], {})
        assert await db.rows("tasks") == []


async def test_updating_moves_updated_at_and_only_that(scope: PackScope) -> None:
    async with open_database(scope) as db:
        await db.apply("1", [lead()], {})
    later = replace(scope, now=NOW + timedelta(hours=2))
    async with open_database(later) as db:
        await db.apply("2", [Update("leads", "lead_1", {"email": None, "notes": "x"})], {})
        row = await db.row("leads", "lead_1")
    assert row is not None
    assert row["created_at"] == "2026-11-16T09:30:00.000000+00:00"
    assert row["updated_at"] == "2026-11-16T11:30:00.000000+00:00"
    assert (row["name"], row["notes"]) == ("Sarah Chen", "x")


async def test_rules_of_the_database_are_reported_in_words(scope: PackScope) -> None:
    bad_stage = Insert("leads", {"id": "lead_2", "name": "B", "stage": "sold"})
    orphan = Insert("quotes", {"id": "quote_1", "lead_id": "nobody"})
    nameless = Insert("leads", {"id": "lead_3"})
    async with open_database(scope) as db:
        await db.apply("first", [lead()], {})
        for change, words in (
            (bad_stage, "one of its values is not allowed"),
            (orphan, "a record that it refers to does not exist"),
            (nameless, "one of its values is missing"),
            (lead(), "a record like it already exists"),
        ):
            with pytest.raises(Conflict, match=words):
                await db.apply("second", [change], {})
        assert await db.count("leads") == 1


async def test_quote_has_at_most_one_job_until_that_is_cancelled(scope: PackScope) -> None:
    quote = Insert("quotes", {"id": "quote_1", "lead_id": "lead_1"})

    def job(id: str) -> Insert:
        return Insert("jobs", {"id": id, "quote_id": "quote_1", "lead_id": "lead_1"})

    async with open_database(scope) as db:
        await db.apply("1", [lead(), quote, job("job_1")], {})
        with pytest.raises(Conflict):
            await db.apply("2", [job("job_2")], {})
        await db.apply("3", [Update("jobs", "job_1", {"status": "cancelled"})], {})
        await db.apply("4", [job("job_2")], {})


async def test_rows_are_searched_ordered_and_limited(scope: PackScope) -> None:
    people = [
        lead(f"lead_{n:02}", name=f"Person {n}", suburb="Clayton" if n % 2 else "Mulgrave")
        for n in range(20)
    ]
    async with open_database(scope) as db:
        await db.apply(scope.key, people, {})
        odd = await db.rows("leads", {"suburb": "Clayton"})
        last = await db.rows("leads", order="name", descending=True, limit=3)
        some = await db.rows("leads", {"id": ["lead_03", "lead_04", "nobody"], "email": None})
        assert await db.rows("leads", {"id": []}) == []
        assert await db.rows("leads", {"email": "x@example.com"}) == []
        assert await db.count("leads", {"suburb": "Mulgrave"}) == 10
        eighteen = await db.rows("leads", limit=18)
    assert [row["id"] for row in odd] == [f"lead_{n:02}" for n in range(1, 20, 2)]
    assert [row["name"] for row in last] == ["Person 9", "Person 8", "Person 7"]
    assert [row["id"] for row in some] == ["lead_03", "lead_04"]
    assert [row["id"] for row in eighteen] == [f"lead_{n:02}" for n in range(18)]


async def test_text_is_found_whatever_signs_it_holds(scope: PackScope) -> None:
    texts = {
        "note_1": "Gutter 100% blocked",
        "note_2": "gutter 100 blocked",
        "note_3": 'say "hi", (really) a_b\\c *now*',
        "note_4": "Zoë's ROOF — Ünley & 1=1; DROP TABLE notes;--",
    }
    changes = [Insert("notes", {"id": note, "text": text}) for note, text in texts.items()]
    async with open_database(scope) as db:
        await db.apply(scope.key, changes, {})

        async def found(text: str) -> list[str]:
            rows = await db.rows("notes", {"text": Contains(text)}, order="id")
            return [row["id"] for row in rows]

        assert await found("GUTTER") == ["note_1", "note_2"]
        assert await found("100%") == ["note_1"]
        assert await found('"hi", (really) A_B\\c') == ["note_3"]
        assert await found("b_c") == []
        assert await found("gutter*blocked") == []
        assert await found("*now*") == ["note_3"]
        assert await found("ünley & 1=1; drop") == ["note_4"]
        for note, text in texts.items():
            (row,) = await db.rows("notes", {"text": text})
            assert row["id"] == note
            (row,) = await db.rows("notes", {"text": [text, 'other",("']})
            assert row["id"] == note


async def test_dates_and_times_are_searched_from_and_to(scope: PackScope) -> None:
    tasks = [
        Insert("tasks", {"id": f"task_{n}", "title": "x", "due": f"2026-11-{n:02}"})
        for n in range(10, 15)
    ]
    async with open_database(scope) as db:
        await db.apply(scope.key, tasks, {})
        some = await db.rows("tasks", {"due": Between("2026-11-11", "2026-11-13")}, order="due")
        early = await db.rows("tasks", {"due": Between(high="2026-11-10")})
        assert len(await db.rows("tasks", {"created_at": Between(low=NOW)})) == 5
        after = Between(low="2026-11-16T20:31:00+11:00")
        assert await db.rows("tasks", {"created_at": after}) == []
    assert [row["id"] for row in some] == ["task_11", "task_12", "task_13"]
    assert [row["id"] for row in early] == ["task_10"]


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("table", "row", "words"),
    [
        ("pg_shadow", {}, "there is no table 'pg_shadow'"),
        ('leads"; DROP TABLE leads; --', {}, "there is no table"),
        ("leads", {"id": "x", "name = 'y' --": 1}, "has no column"),
        ("leads", {"name": "no id"}, "needs an id"),
        ("leads", {"id": "x", "name": "a\0b"}, "name of leads cannot be stored: it contains a NUL"),
        ("leads", {"id": "x", "name": "\ud800"}, "half of a surrogate pair"),
        ("leads", {"id": "x", "name": "y" * 1_000_001}, "longer than 1000000 characters"),
        ("leads", {"id": "x", "name": 7}, "must be text, not int"),
        ("invoices", {"id": "x", "amount_cents": 1.5}, "must be a whole number"),
        ("invoices", {"id": "x", "amount_cents": True}, "must be a whole number"),
        ("invoices", {"id": "x", "amount_cents": 2**63}, "the number is too large"),
        ("quote_lines", {"id": "x", "quantity": float("nan")}, "must be a finite number"),
        ("quote_lines", {"id": "x", "quantity": 10**400}, "must be a finite number"),
        ("tasks", {"id": "x", "due": "31/12/2026"}, "must be a day such as 2026-11-15"),
        ("tasks", {"id": "x", "due": "2026-02-30"}, "due of tasks cannot be stored"),
        ("tasks", {"id": "x", "completed_at": "2026-11-16T10:00:00"}, "needs its offset"),
        ("inspection_items", {"id": "x", "asset_ids": [float("inf")]}, "asset_ids of"),
        ("inspection_items", {"id": "x", "asset_ids": ["a\0"]}, "contains a NUL"),
        ("performed", {"key": "x"}, "only `apply` writes"),
    ],
)
async def test_what_cannot_be_kept_is_refused_before_any_database_is_asked(
    tmp_path: Path, table: str, row: dict[str, Any], words: str
) -> None:
    scope = pack_scope(tmp_path)
    async with open_database(scope) as db:
        with pytest.raises(ToolBroke, match=words):
            await db.apply(scope.key, [Insert(table, row)], {})
        assert set((await db.counts()).values()) == {0}


async def test_backslashes_and_u0000_in_json_are_not_taken_for_nul(scope: PackScope) -> None:
    result = {"text": "\\u0000 and \\\\u0000", "emoji": "🏠", "lines": "a\nb"}
    async with open_database(scope) as db:
        await db.apply(scope.key, [], result)
        assert await db.performed(scope.key) == result


async def test_searches_name_what_there_is(tmp_path: Path) -> None:
    async with open_database(pack_scope(tmp_path)) as db:
        for attempt, words in (
            (db.rows("users"), "there is no table 'users'"),
            (db.rows("leads", {"1=1 OR name": "x"}), "has no column"),
            (db.rows("leads", order="name; DROP TABLE leads"), "has no column"),
            (db.rows("leads", limit=0), "limit must be"),
            (db.rows("inspection_items", {"asset_ids": "x"}), "cannot be searched"),
            (db.rows("tasks", {"due": Contains("1")}), "is not text"),
        ):
            with pytest.raises(ToolBroke, match=words):
                await attempt


async def test_a_row_is_read_for_proof_without_a_chance_to_write(scope: PackScope) -> None:
    async with open_database(scope) as db:
        await db.apply(scope.key, [lead()], {})
    found = await read_row("leads", {"id": "lead_1", "stage": "new"}, ("name", "stage"), scope)
    assert found == {"name": "Sarah Chen", "stage": "new"}
    whole = await read_row("leads", {"id": "lead_1"}, (), scope)
    assert whole is not None
    assert set(whole) == set(TABLES["leads"].columns)
    assert await read_row("leads", {"id": "lead_1", "stage": "won"}, (), scope) is None
    with pytest.raises(ToolBroke, match="has no column 'password'"):
        await read_row("leads", {"id": "lead_1"}, ("password",), scope)


async def test_health_says_what_is_there(scope: PackScope) -> None:
    async with open_database(scope) as db:
        await db.apply(scope.key, [lead()], {})
        health_report = await health(db)
    assert health_report["reachable"] is True
    assert health_report["migrations"][0] == "0001_tables"
    assert health_report["backend"] == db.backend
    assert set(health_report["counts"]) == set(TABLES)
    assert (
        health_report["counts"]["leads"],
        health_report["counts"]["performed"],
        health_report["counts"]["jobs"],
    ) == (
        1,
        1,
        0,
    )


async def test_a_snapshot_is_the_whole_database_with_its_hash(scope: PackScope) -> None:
    async with open_database(scope) as db:
        await db.apply(scope.key, [lead(), lead("lead_2", name="Zoë")], {"n": 1})
        taken = await take_snapshot(db, scope, "snap_1")
        await db.apply("later", [lead("lead_3")], {})
        assert await take_snapshot(db, scope, "snap_1") == taken
        with pytest.raises(ToolBroke, match="cannot name a snapshot"):
            await take_snapshot(db, scope, "../etc")
    file = scope.state / "snapshots" / taken.file_name
    assert file.stat().st_size == taken.bytes
    assert file.stat().st_mode & 0o777 == 0o600
    assert sorted(names_in(file)) == ["Sarah Chen", "Zoë"]
    assert [path.name for path in file.parent.iterdir()] == [taken.file_name]
    if file.suffix == ".db":
        # The format's two version bytes: 1 is a file that stands alone, 2 one with a log beside it.
        assert file.read_bytes()[18:20] == b"\x01\x01"
    assert await remove_snapshot(scope, taken.file_name) is True
    assert await remove_snapshot(scope, taken.file_name) is False
    with pytest.raises(ToolBroke):
        await remove_snapshot(scope, "../roofing.db")


def names_in(file: Path) -> list[str]:
    if file.suffix == ".json":
        return [row["name"] for row in json.loads(file.read_text())["leads"]]
    connection = sqlite3.connect(file)
    try:
        return [name for (name,) in connection.execute("SELECT name FROM leads")]
    finally:
        connection.close()


def test_an_id_is_the_same_for_a_repeated_call_and_another_for_every_other() -> None:
    first = new_id("lead", "run_1:step:1")
    assert first == new_id("lead", "run_1:step:1")
    assert first.startswith("lead_")
    others = {new_id("lead", "run_1:step:2"), new_id("lead", "run_1:step:1", 1)}
    assert first not in others
    assert len({new_id("item", "k", n) for n in range(1000)}) == 1000


FIRST_USE = """
import asyncio, json, sys
from pathlib import Path
from packs.roofing.database import Insert, open_database
from tests.unit.packs.roofing.roofing_harness import pack_scope

async def main(state, settings, number):
    scope = pack_scope(Path(state), json.loads(settings), key=f"call {number}")
    async with open_database(scope) as db:
        await db.apply(scope.key, [Insert("notes", {"id": f"note_{number}", "text": "x"})], {})

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.soak
@pytest.mark.parametrize("backend", ["sqlite", "postgresql"])
async def test_several_processes_may_be_the_first_at_once(
    backend: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    settings = {}
    if backend == "postgresql":
        settings = {"ROOFING_DATABASE_URL": request.getfixturevalue("postgres_url")}
    command = [sys.executable, "-c", FIRST_USE, str(tmp_path), json.dumps(settings)]
    root = FOLDER.parents[1]
    processes = [
        await asyncio.create_subprocess_exec(*command, str(number), cwd=root) for number in range(4)
    ]
    assert [await process.wait() for process in processes] == [0] * 4
    async with open_database(pack_scope(tmp_path, settings)) as db:
        assert await db.count("notes") == 4
