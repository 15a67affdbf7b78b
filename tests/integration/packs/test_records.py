"""Records that Podium keeps for a pack without code: once under one key, and nothing half."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from podium.core.errors import PackInvalid, ToolBroke
from podium.tools.packs import load_pack
from podium.tools.packs.handlers import PackScope, RecordsHandler, handler_of
from podium.tools.packs.records import perform_records, read_record
from tests.unit.packs.bikes import registry_with, write_pack
from tests.unit.packs.test_pack_folders import ROOT

LIBRARY = load_pack(ROOT / "examples/library")


def scope(state: Path, key: str) -> PackScope:
    return PackScope(
        key=key,
        tool="",
        now=datetime(2026, 11, 16, 9, tzinfo=UTC),
        settings={},
        folder=Path(LIBRARY.folder),
        state=state,
        timeout_seconds=30,
    )


async def call(state: Path, tool_name: str, key: str, /, **arguments: Any) -> dict[str, Any]:
    tool = LIBRARY.tool(tool_name)
    assert tool is not None
    handler = handler_of(tool.handler)
    assert isinstance(handler, RecordsHandler)
    return await perform_records(handler, tool, LIBRARY, arguments, scope(state, key))


async def test_call_that_is_repeated_under_its_key_adds_nothing(tmp_path: Path) -> None:
    first = await call(tmp_path, "member.add", "run:1", name="Kim")
    again = await call(tmp_path, "member.add", "run:1", name="Kim")
    other = await call(tmp_path, "member.add", "run:2", name="Kim")

    assert first == again
    assert other["member_id"] != first["member_id"]
    assert (await call(tmp_path, "member.find", "run:3", name="kim"))["count"] == 2


async def test_of_many_that_want_one_book_at_once_one_gets_it(tmp_path: Path) -> None:
    book = (await call(tmp_path, "book.add", "book", title="Momo"))["book_id"]
    member = (await call(tmp_path, "member.add", "member", name="Kim"))["member_id"]

    outcomes = await asyncio.gather(
        *(
            call(tmp_path, "loan.lend", f"run:{n}", book_id=book, member_id=member)
            for n in range(8)
        ),
        return_exceptions=True,
    )

    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["ToolBroke"] * 7 + ["dict"]
    loans = await call(tmp_path, "loan.list", "list", status="open")
    assert [row["due"] for row in loans["loans"]] == ["2026-12-07"]


async def test_overdue_loans_are_those_that_were_due_before_today(tmp_path: Path) -> None:
    book = (await call(tmp_path, "book.add", "book", title="Momo"))["book_id"]
    member = (await call(tmp_path, "member.add", "member", name="Kim"))["member_id"]
    loan = await call(tmp_path, "loan.lend", "loan", book_id=book, member_id=member)

    await call(tmp_path, "loan.renew", "1", loan_id=loan["loan_id"], due="2026-11-16")
    today = await call(tmp_path, "loan.list_overdue", "2")
    await call(tmp_path, "loan.renew", "3", loan_id=loan["loan_id"], due="2026-11-15")
    yesterday = await call(tmp_path, "loan.list_overdue", "4")

    assert (today["count"], yesterday["count"]) == (0, 1)


async def test_refused_call_leaves_the_record_as_it_was(tmp_path: Path) -> None:
    member = (await call(tmp_path, "member.add", "member", name="Kim"))["member_id"]
    await call(tmp_path, "member.leave", "leave", member_id=member)

    with pytest.raises(ToolBroke, match=r'has status "left", and member\.leave needs "active"'):
        await call(tmp_path, "member.leave", "again", member_id=member)
    with pytest.raises(ToolBroke, match="there is no member 'member_x'"):
        await call(tmp_path, "member.rejoin", "other", member_id="member_x")

    row = await read_record("members", {"id": member}, ("status",), scope(tmp_path, "read"))
    assert row == {"status": "left"}


@pytest.mark.parametrize(
    ("records", "problem"),
    [
        ({"id": "part", "add": "parts", "set": {"by": "$arg.who"}}, "'who' is not an argument"),
        ({"id": "part", "update": "parts"}, "needs the required argument 'part_id'"),
        ({"id": "part", "add": "parts", "list": "parts"}, "name one table under"),
        ({"id": "Part", "add": "parts"}, "records.id: "),
    ],
)
def test_records_that_cannot_work_do_not_load(
    tmp_path: Path, records: dict[str, Any], problem: str
) -> None:
    registry = registry_with("/tools/2/handler", {"records": records})
    with pytest.raises(PackInvalid, match=re.escape(problem)) as raised:
        load_pack(write_pack(tmp_path / "bikes", registry))
    assert [fault.pointer for fault in raised.value.problems] == ["/tools/2/handler"]
