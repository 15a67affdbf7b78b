"""One person tries to complete a chain of two, by every interface that takes a yes. None gets through."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from podium.core.decisions import Approval, ApprovalStatus
from podium.web.access.authentication import FORM_HEADER, cookie_name
from podium.web.access.tokens import ConsoleRole, Person
from podium.web.chat.links import link_maker
from tests.integration.web.chat_harness import CHAT, ChatStage, chatting
from tests.integration.web.pending_items import add_approval, add_run

APPROVERS = "approvers: {ops: [ann], owner: [bob, ann, Ann, root]}\n"
MALLORY = CHAT.replace("{person: bob}", "{person: bob, roles: [approver]}")
ROLES = frozenset({ConsoleRole.APPROVER})


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[ChatStage]:
    async with chatting(tmp_path, user=MALLORY, project=APPROVERS) as stage:
        yield stage


class Credentials(NamedTuple):
    """All that one person, ann, can have at once."""

    stage: ChatStage
    token: str
    other: str
    """A second token, whose name differs in case alone."""

    async def by_token(self, asked: Approval, token: str = "") -> httpx.Response:
        headers = {"authorization": f"Bearer {token or self.token}"}
        path = f"/api/v1/approvals/{asked.id}/approve"
        return await self.stage.client.post(path, json={}, headers=headers)

    async def by_session(self, asked: Approval) -> httpx.Response:
        """The same token in a browser."""
        cli = self.stage.context
        person = cli.tokens.person_with(self.token, cli.podium.clock.now())
        assert person is not None
        return await self._with_cookie(asked, person)

    async def by_link(self, asked: Approval) -> httpx.Response:
        """A notice's link for the same person."""
        maker = link_maker(self.stage.podium)
        path = maker.link(asked.id, "ann", "approver", timedelta(hours=1))
        found = maker.use(path.removeprefix("/l/"))
        assert found is not None
        return await self._with_cookie(asked, found.visitor())

    async def by_plain_chat(self, asked: Approval, name: str) -> httpx.Response:
        body = {"id": f"{asked.id}{name}", "from": name, "text": f"APPROVE: {asked.id}"}
        return await self.stage.post_plain(body)

    async def _with_cookie(self, asked: Approval, person: Person) -> httpx.Response:
        cli = self.stage.context
        cookie = cli.sessions.begin(person, cli.podium.clock.now() + timedelta(minutes=5))
        cookies = {cookie_name(cli, of_card=bool(person.card)): cookie}
        headers = {FORM_HEADER: cli.sessions.form_token(cookie), "origin": self.stage.url}
        path = f"/api/v1/approvals/{asked.id}/approve"
        async with httpx.AsyncClient(base_url=self.stage.url, cookies=cookies) as browser:
            return await browser.post(path, json={}, headers=headers)


Attack = Callable[[Credentials, Approval], Awaitable[object]]

ATTACKS: dict[str, Attack] = {
    "the same token again": lambda ann, asked: ann.by_token(asked),
    "the same token in a browser": lambda ann, asked: ann.by_session(asked),
    "a second token, its name in another case": lambda ann, asked: ann.by_token(asked, ann.other),
    "the link of a notice": lambda ann, asked: ann.by_link(asked),
    "a chat that knows her": lambda ann, asked: ann.stage.telegram(f"APPROVE: {asked.id}"),
    "words for the operator": lambda ann, asked: ann.stage.telegram(f"ask APPROVE: {asked.id}"),
}


async def test_nobody_is_two_people_by_any_interface(stage: ChatStage) -> None:
    now = stage.podium.clock.now()
    token, _ = stage.context.tokens.make("ann", ROLES, now)
    other, _ = stage.context.tokens.make("Ann", ROLES, now)
    ann = Credentials(stage, token, other)
    through = []
    for name, attack in ATTACKS.items():
        asked = await _a_chain(stage)
        assert (await ann.by_token(asked)).status_code == 200
        await attack(ann, asked)
        if (await stage.approval(asked)).status is not ApprovalStatus.PENDING:
            through.append(name)
    assert through == []


async def test_a_program_with_the_secret_of_a_chat_is_one_person_whoever_it_names(
    stage: ChatStage,
) -> None:
    asked = await _a_chain(stage)
    mallory = Credentials(stage, "", "")
    first = await mallory.by_plain_chat(asked, "1001")
    assert "Recorded." in first.json()["text"]
    second = await mallory.by_plain_chat(asked, "1002")
    assert "under another name" in second.json()["text"]
    known = await stage.approval(asked)
    assert known.status is ApprovalStatus.PENDING
    assert [(grant.by, grant.authentication) for grant in known.grants] == [("ann", "chat")]
    token, _ = stage.context.tokens.make("bob", ROLES, stage.podium.clock.now())
    assert (await Credentials(stage, token, "").by_token(asked)).status_code == 200
    granted = await stage.approval(asked)
    assert [grant.authentication for grant in granted.grants] == ["chat", "token"]


async def test_every_way_in_is_recorded_for_what_it_is(stage: ChatStage) -> None:
    token, _ = stage.context.tokens.make("ann", ROLES, stage.podium.clock.now())
    ann, proofs = Credentials(stage, token, token), []
    for attack in (ann.by_token, ann.by_session, ann.by_link):
        asked = await add_approval(stage.podium, await add_run(stage.podium))
        answer = await attack(asked)
        assert answer.status_code == 200, answer.text
        proofs += [grant.authentication for grant in (await stage.approval(asked)).grants]
    assert proofs == ["token", "console_session", "card_link"]


async def _a_chain(stage: ChatStage) -> Approval:
    run = await add_run(stage.podium)
    return await add_approval(stage.podium, run, approvers=("ops", "owner"))
