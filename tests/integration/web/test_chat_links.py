"""Links from notices: a look costs nothing, an opening uses them up, and they lead to one card alone."""

from __future__ import annotations

import asyncio
import re
import stat
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from podium.config.chat_settings import NoticeSettings
from podium.core.decisions import ApprovalStatus
from podium.testing import FixedClock
from podium.web.access.tokens import ConsoleRole
from podium.web.chat import link_paths
from podium.web.chat.links import LinkMaker
from tests.integration.web.chat_harness import ChatStage, chatting

CARD = "apr_01a1e67e945d794d93eee0c7f85ecb65"
HOUR = timedelta(hours=1)


def maker(folder: Path, clock: FixedClock | None = None) -> LinkMaker:
    return LinkMaker(folder / "links.key", folder / "links", clock or FixedClock())


def token_of(path: str) -> str:
    return path.removeprefix("/l/")


def _other(text: str) -> str:
    """The text with one character changed. Not the last: of that, base64 ignores some bits."""
    return ("A" if text[0] != "A" else "B") + text[1:]


def test_a_link_is_known_again_with_all_it_allows_and_its_key_is_private(tmp_path: Path) -> None:
    made = maker(tmp_path)
    name = "änn" + "😀" * 97
    path = made.link(CARD, name, "approver", HOUR)
    assert path.startswith("/l/")
    found = made.read(token_of(path))
    assert found is not None
    visitor = found.visitor()
    assert (visitor.name, visitor.roles, visitor.card) == (
        name,
        frozenset({ConsoleRole.APPROVER}),
        CARD,
    )
    assert stat.S_IMODE((tmp_path / "links.key").stat().st_mode) == 0o600


def test_looking_uses_nothing_up_and_opening_does_also_for_other_processes(tmp_path: Path) -> None:
    clock = FixedClock()
    first, second = maker(tmp_path, clock), maker(tmp_path, clock)
    token = token_of(first.link(CARD, "ann", "viewer", HOUR))
    assert first.read(token)
    assert first.read(token)
    assert second.use(token)
    assert first.use(token) is None
    assert first.read(token) is None
    assert maker(tmp_path, clock).use(token) is None


def test_of_many_who_open_at_once_one_gets_in(tmp_path: Path) -> None:
    async def race() -> list[bool]:
        clock = FixedClock()
        makers = [maker(tmp_path, clock) for _ in range(16)]
        token = token_of(makers[0].link(CARD, "ann", "viewer", HOUR))
        opened = await asyncio.gather(*(asyncio.to_thread(item.use, token) for item in makers))
        return [item is not None for item in opened]

    assert sum(asyncio.run(race())) == 1


def test_a_link_is_over_when_its_time_has_passed(tmp_path: Path) -> None:
    clock = FixedClock()
    made = maker(tmp_path, clock)
    token = token_of(made.link(CARD, "ann", "viewer", HOUR))
    clock.advance(3599)
    assert made.read(token)
    clock.advance(2)
    assert made.read(token) is None
    assert made.use(token) is None


def test_a_link_that_was_changed_or_never_made_is_none(tmp_path: Path) -> None:
    made, other = maker(tmp_path), maker(tmp_path / "other")
    token = token_of(made.link(CARD, "ann", "viewer", HOUR))
    body, _, signed = token.partition(".")
    foreign = token_of(other.link(CARD, "ann", "approver", HOUR))
    for forged in (
        "",
        ".",
        body,
        f"{body}.",
        f"{_other(body)}.{signed}",
        f"{body}.{_other(signed)}",
        f"{foreign.partition('.')[0]}.{signed}",
        foreign,
        token + "x",
        "\udcff.\udcff",
        "a" * 100_000,
    ):
        assert made.read(forged) is None, forged
        assert made.use(forged) is None, forged
    assert made.use(token)


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[ChatStage]:
    async with chatting(tmp_path) as stage:
        yield stage


def notice(role: str) -> NoticeSettings:
    return NoticeSettings.model_validate({"to": "secret://X", "person": "ann", "role": role})


async def opened(stage: ChatStage, path: str) -> httpx.Response:
    """Press the one button of the page, as a browser does it."""
    return await stage.client.post(path, headers={"Origin": stage.url})


async def test_the_button_opens_the_card_once_and_a_preview_does_not(stage: ChatStage) -> None:
    _, asked = await stage.asked()
    path = link_paths(stage.podium)(asked.id, notice("approver"))
    for _ in range(3):
        preview = await stage.client.get(path)
        assert preview.status_code == 200
        assert "Open" in preview.text
        assert "set-cookie" not in preview.headers
    entered = await opened(stage, path)
    assert (entered.status_code, entered.headers["location"]) == (303, f"/cards/{asked.id}")
    assert "Max-Age=900" in entered.headers["set-cookie"]
    assert (await stage.client.get(f"/cards/{asked.id}")).status_code == 200
    for again in (await stage.client.get(path), await opened(stage, path)):
        assert again.status_code == 410


async def test_who_came_by_a_link_sees_that_card_and_nothing_else(stage: ChatStage) -> None:
    _, asked = await stage.asked()
    _, other = await stage.asked()
    await opened(stage, link_paths(stage.podium)(asked.id, notice("viewer")))
    for path in ("/runs", f"/cards/{other.id}", "/api/v1/runs", f"/api/v1/approvals/{other.id}"):
        assert (await stage.client.get(path)).status_code in (401, 403), path
    page = await stage.client.get(f"/cards/{asked.id}")
    assert page.status_code == 200
    refused = await stage.client.get("/runs")
    for shown in (page.text, refused.text):
        led = set(re.findall(r'(?:href|action)="(/[^"]*)"', shown))
        assert {item for item in led if not item.startswith(("/static/", "/cards/"))} == {"/logout"}


async def test_a_link_for_looking_approves_nothing(stage: ChatStage) -> None:
    _, asked = await stage.asked()
    await opened(stage, link_paths(stage.podium)(asked.id, notice("viewer")))
    cookie = next(iter(stage.client.cookies.values()))
    headers = {"Origin": stage.url, "X-Podium-Form": stage.context.sessions.form_token(cookie)}
    answer = await stage.client.post(
        f"/api/v1/approvals/{asked.id}/approve", headers=headers, json={}
    )
    assert answer.status_code == 403
    assert (await stage.approval(asked)).status is ApprovalStatus.PENDING


async def log_in(stage: ChatStage, *roles: ConsoleRole) -> None:
    """As a browser does it, on the page for that."""
    token, _ = stage.context.tokens.make("sam", frozenset(roles), stage.podium.clock.now())
    answer = await stage.client.post("/login", data={"token": token}, headers={"Origin": stage.url})
    assert answer.status_code == 303


async def pressed(stage: ChatStage, path: str, cookie: str) -> httpx.Response:
    """A button on a page that this session was shown."""
    headers = {"Origin": stage.url, "X-Podium-Form": stage.context.sessions.form_token(cookie)}
    return await stage.client.post(path, headers=headers, json={})


@pytest.mark.sample(1)
@pytest.mark.parametrize("role", ["viewer", "operator", "approver"])
async def test_a_browser_that_is_logged_in_keeps_its_session_and_is_led_to_the_card(
    stage: ChatStage, role: str
) -> None:
    _, asked = await stage.asked()
    await log_in(stage, ConsoleRole.APPROVER)
    path = link_paths(stage.podium)(asked.id, notice(role))
    entered = await opened(stage, path)
    assert (entered.status_code, entered.headers["location"]) == (303, f"/cards/{asked.id}")
    assert "set-cookie" not in entered.headers
    assert (await stage.client.get("/runs")).status_code == 200
    (cookie,) = stage.client.cookies.values()
    approved = await pressed(stage, f"/api/v1/approvals/{asked.id}/approve", cookie)
    assert approved.status_code == 200
    assert [grant.by for grant in (await stage.approval(asked)).grants] == ["sam"]
    assert (await stage.client.get(path)).status_code == 410


async def test_a_link_that_allows_more_than_the_session_adds_to_it_for_its_card_alone(
    stage: ChatStage,
) -> None:
    _, asked = await stage.asked()
    _, other = await stage.asked()
    await log_in(stage, ConsoleRole.OPERATOR)
    await opened(stage, link_paths(stage.podium)(asked.id, notice("approver")))
    own, of_card = stage.client.cookies.values()
    for path in ("/runs", f"/cards/{asked.id}"):
        shown = await stage.client.get(path)
        assert stage.context.sessions.form_token(own) in shown.text, path
        assert 'href="/health"' in shown.text, path
    refused = await pressed(stage, f"/api/v1/approvals/{other.id}/approve", own)
    assert refused.status_code == 403
    # Whoever could plant a link's cookie in a browser knows its word, and gets nothing by it.
    planted = await pressed(stage, f"/api/v1/approvals/{asked.id}/approve", of_card)
    assert planted.status_code == 401
    approved = await pressed(stage, f"/api/v1/approvals/{asked.id}/approve", own)
    assert approved.status_code == 200
    assert [grant.by for grant in (await stage.approval(asked)).grants] == ["ann"]
    kept = dict(stage.client.cookies)
    left = await pressed(stage, "/logout", own)
    assert left.status_code == 303
    stage.client.cookies.update(kept)
    for path in ("/runs", f"/cards/{asked.id}"):
        assert (await stage.client.get(path)).headers["location"].startswith("/login"), path


async def test_whoever_logs_in_acts_as_themselves_also_on_a_card_that_a_link_opened(
    stage: ChatStage,
) -> None:
    _, asked = await stage.asked()
    await opened(stage, link_paths(stage.podium)(asked.id, notice("approver")))
    await log_in(stage, ConsoleRole.APPROVER)
    (cookie,) = stage.client.cookies.values()
    approved = await pressed(stage, f"/api/v1/approvals/{asked.id}/approve", cookie)
    assert approved.status_code == 200
    assert [grant.by for grant in (await stage.approval(asked)).grants] == ["sam"]


async def test_a_form_of_another_site_opens_no_link(stage: ChatStage) -> None:
    _, asked = await stage.asked()
    path = link_paths(stage.podium)(asked.id, notice("approver"))
    forged = await stage.client.post(path, headers={"Origin": "https://evil.example"})
    assert forged.status_code == 403
    assert (await stage.client.get(path)).status_code == 200


async def test_guessing_is_slowed_down_and_a_right_link_is_not(stage: ChatStage) -> None:
    answers = [(await stage.client.get(f"/l/guess{n}.x")).status_code for n in range(15)]
    assert answers[:10] == [410] * 10
    assert 429 in answers
    _, asked = await stage.asked()
    path = link_paths(stage.podium)(asked.id, notice("viewer"))
    assert (await stage.client.get(path)).status_code == 200
    assert (await opened(stage, path)).status_code == 303


async def test_a_run_has_its_page_which_asks_who_comes(stage: ChatStage) -> None:
    run, _ = await stage.asked()
    path = link_paths(stage.podium)(run.id, notice("viewer"))
    assert path == f"/runs/{run.id}"
    assert (await stage.client.get(path)).status_code == 303
