"""Sessions that were left: over for every process, over restarts, in a book that does not grow."""

from __future__ import annotations

import stat
from pathlib import Path

import httpx
import pytest

from podium.core.errors import UserMustAct
from podium.web.access.sessions import SignedOutSessions
from podium.web.access.tokens import console_folder
from tests.integration.web.console_harness import Stage, console

NOW = 1_000.0


async def entered(stage: Stage, client: httpx.AsyncClient) -> str:
    """The cookie of a session that begins now."""
    await client.post("/login", data={"token": stage.token})
    return next(iter(client.cookies.values()))


async def test_a_session_that_was_left_lets_nobody_in_after_a_restart(tmp_path: Path) -> None:
    async with (
        console(tmp_path) as stage,
        stage.client("", origin=stage.url) as one,
        stage.client("", origin=stage.url) as other,
    ):
        left, stays = await entered(stage, one), await entered(stage, other)
        word = {"x-podium-form": stage.context.sessions.form_token(left)}
        assert (await one.post("/logout", headers=word)).status_code == 303
        name = f"podium_{stage.context.sessions.console_id}"
        book = console_folder(stage.podium.key_dir) / "left.json"
    assert stat.S_IMODE(book.stat().st_mode) == 0o600
    assert left not in book.read_text()
    async with console(tmp_path) as again, again.client("") as client:
        for cookie, status in ((left, 401), (stays, 200)):
            answer = await client.get("/api/v1/runs", headers={"cookie": f"{name}={cookie}"})
            assert answer.status_code == status


def test_what_one_process_ends_is_over_for_another_until_it_would_have_ended(
    tmp_path: Path,
) -> None:
    here, there = (
        SignedOutSessions(tmp_path / "left.json"),
        SignedOutSessions(tmp_path / "left.json"),
    )
    assert not there.has("a", NOW + 60)
    here.add("a", NOW + 60, NOW)
    assert there.has("a", NOW + 60)
    there.add("b", NOW + 600, NOW + 61)
    assert here.has("b", NOW + 600)
    assert '"a"' not in (tmp_path / "left.json").read_text()


def test_with_too_many_nobody_comes_back_and_those_that_end_later_stay_in(tmp_path: Path) -> None:
    book = SignedOutSessions(tmp_path / "left.json", most=10)
    for number in range(50):
        book.add(f"s{number}", NOW + number, NOW - 1)
    assert all(book.has(f"s{number}", NOW + number) for number in range(50))
    assert (tmp_path / "left.json").read_text().count('"s') <= 10
    assert not book.has("somebody else", NOW + 50)


def test_a_book_that_cannot_be_read_lets_nobody_in(tmp_path: Path) -> None:
    (tmp_path / "left.json").write_text("{")
    with pytest.raises(UserMustAct, match=r"session\.key"):
        SignedOutSessions(tmp_path / "left.json").has("a", NOW)
