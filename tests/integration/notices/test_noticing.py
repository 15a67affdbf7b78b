"""Notices of podium.yaml, from a record to a real service."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from podium.app.app import Podium
from podium.app.notices import Happening, notice_of, notice_service
from podium.config.chat_settings import NoticeSettings
from podium.config.trust import TrustBook
from podium.core.decisions import Tier
from podium.core.ids import short_id
from podium.notices import FileDeliveryLog
from podium.ports import EventQuery
from podium.testing import FixedClock, MemoryStore, SteadyIds, retry_until
from tests.unit.notices.stage import Listener, add_run, ask, end, listening, podium_in

MINE = """
secrets: [CHAT]
notices:
  - {to: 'secret://CHAT', min_tier: T2, role: approver, person: ann}
"""
SECRET = "sk-ant-api03-" + "A1b2C3d4" * 12
QUICK = (0.01,)


def path_to(card_id: str, notice: NoticeSettings) -> str:
    return f"/l/{card_id}.{notice.person}.{notice.role}"


async def test_what_waits_reaches_a_real_service_with_its_link_and_without_secrets(
    tmp_path: Path,
) -> None:
    said: list[str] = []
    with listening() as service:
        podium = podium_in(tmp_path, user=MINE, said=said, CHAT=service.url, MY_API_KEY=SECRET)
        try:
            asked = await told_of_one(podium, service, "\x1b[2J" + f"post {SECRET} to ‮ everybody")
        finally:
            await podium.close()
    (body,) = service.bodies
    assert body["title"] == "Podium: 1 waiting for you"
    first, second, third, link = body["message"].splitlines()
    assert first.startswith("T3 waits for approval: \\x1b[2Jpost [redacted")
    assert "\\u202e" in first
    assert SECRET not in body["message"]
    assert second.endswith("(demo) “a task”")
    assert third.endswith(f"APPROVE: {short_id(asked)}")
    assert link == f"https://podium.example.org/l/{asked}.ann.approver"
    assert said == []


async def told_of_one(podium: Podium, service: Listener, summary: str) -> str:
    store = await podium.store()
    kit = (store, podium.clock, podium.ids)
    async with notice_service(
        podium, console_url="https://podium.example.org/", path_to=path_to, pauses_seconds=QUICK
    ):
        await begun(podium, "CHAT")
        run = await add_run(*kit)
        await ask(*kit, run, tier=Tier.T1)
        asked = await ask(*kit, run, tier=Tier.T3, summary=summary)
        await retry_until(lambda: service.bodies, 30)
    return asked.id


async def begun(podium: Podium, outlet: str) -> None:
    file = podium.folders.state / "notices" / f"{outlet}.json"
    await retry_until(file.exists)


def has_told(service: Listener, messages: int) -> bool:
    return len(service.bodies) == messages


async def test_a_restarted_console_tells_what_happened_meanwhile_once(tmp_path: Path) -> None:
    said: list[str] = []
    with listening() as service:
        for number in range(3):
            podium = podium_in(tmp_path, user=MINE, said=said, CHAT=service.url)
            kit = (await podium.store(), podium.clock, podium.ids)
            async with notice_service(podium, pauses_seconds=QUICK):
                await begun(podium, "CHAT")
                await retry_until(partial(has_told, service, number))
            await end(kit[0], await add_run(*kit, task=f"task {number}"))
            await podium.close()
    assert [body["title"] for body in service.bodies] == ["Podium: 1 ended"] * 2
    for number, body in enumerate(service.bodies):
        assert f"“task {number}”" in body["message"]


async def test_a_dead_service_stops_nobody_and_is_told_when_it_is_back(tmp_path: Path) -> None:
    said: list[str] = []
    with listening() as dead, listening() as service:
        dead.statuses = [500] * 3
        user = MINE.replace("[CHAT]", "[CHAT, DEAD]") + "  - {to: 'secret://DEAD'}\n"
        podium = podium_in(tmp_path, user=user, said=said, CHAT=service.url, DEAD=dead.url)
        kit = (await podium.store(), podium.clock, podium.ids)
        async with notice_service(podium, pauses_seconds=QUICK):
            await begun(podium, "CHAT")
            await begun(podium, "DEAD")
            await end(kit[0], await add_run(*kit))
            await retry_until(lambda: service.bodies and dead.bodies)
        await podium.close()
    assert dead.tries == 4
    assert said[0].startswith("a notice to DEAD could not be delivered; retrying: ")
    assert dead.url not in " ".join(said)


async def test_a_lock_that_cannot_be_had_is_said_once_and_tried_on(tmp_path: Path) -> None:
    said: list[str] = []
    with listening() as service:
        podium = podium_in(tmp_path, user=MINE, said=said, CHAT=service.url)
        in_the_way = podium.folders.make_state() / "notices" / "lock"
        in_the_way.mkdir(parents=True)
        for _ in range(2):
            async with notice_service(podium, hold_pause_seconds=0.01):
                await retry_until(lambda: said)
            assert "retrying: " in said[0]
            assert str(in_the_way) in said.pop(0)
            assert said == []
        kit = (await podium.store(), podium.clock, podium.ids)
        async with notice_service(podium, pauses_seconds=QUICK, hold_pause_seconds=0.01):
            await retry_until(lambda: said)
            in_the_way.rmdir()
            await begun(podium, "CHAT")
            await end(kit[0], await add_run(*kit))
            await retry_until(lambda: service.bodies, 30)
        await podium.close()
    assert said[1:] == ["notices are sent again"]


async def test_telling_that_broke_off_is_said_and_closing_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    def broken(book: FileDeliveryLog) -> bool:
        raise RuntimeError("no such thing")

    # Nothing is known that breaks it off.
    monkeypatch.setattr(FileDeliveryLog, "try_hold", broken)
    podium = podium_in(tmp_path, user=MINE, said=said, CHAT="json://127.0.0.1:9/")
    async with notice_service(podium):
        await retry_until(lambda: said)
    await podium.close()
    (words,) = said
    assert words.startswith("notices have stopped: RuntimeError: no such thing")


async def test_a_secret_that_is_not_there_is_said_and_the_others_are_told(tmp_path: Path) -> None:
    said: list[str] = []
    with listening() as service:
        user = MINE + "  - {to: 'secret://MISSING'}\n"
        podium = podium_in(tmp_path, user=user, said=said, CHAT=service.url)
        kit = (await podium.store(), podium.clock, podium.ids)
        async with notice_service(podium, pauses_seconds=QUICK):
            await begun(podium, "CHAT")
            await end(kit[0], await add_run(*kit))
            await retry_until(lambda: service.bodies, 30)
        await podium.close()
    (words,) = said
    assert words.startswith(
        "no notices are sent to secret://MISSING: secret 'MISSING' is not declared"
    )


@pytest.mark.parametrize("trusted", [False, True])
async def test_a_project_tells_nobody_before_it_is_trusted(tmp_path: Path, trusted: bool) -> None:
    said: list[str] = []
    project = "notices: [{to: 'secret://CHAT'}]\n"
    with listening() as service:
        podium = podium_in(
            tmp_path, user="secrets: [CHAT]\n", project=project, said=said, CHAT=service.url
        )
        configuration = podium.configuration
        if trusted:
            TrustBook(podium.folders.user_state).trust(
                podium.folders.project_file, configuration.project_digest
            )
        kit = (await podium.store(), podium.clock, podium.ids)
        async with notice_service(podium, pauses_seconds=QUICK):
            if trusted:
                await begun(podium, "CHAT")
            await end(kit[0], await add_run(*kit))
            if trusted:
                await retry_until(lambda: service.bodies, 30)
        await podium.close()
    assert len(service.bodies) == trusted
    assert (podium.folders.state / "notices").exists() is trusted
    assert ["podium trust" in words for words in said] == ([] if trusted else [True])


async def test_what_is_told_is_looked_through_for_secrets_once_more() -> None:
    store, clock, ids = MemoryStore(FixedClock()), FixedClock(), SteadyIds()
    run = await add_run(store, clock, ids, task="use hunter2 there")
    await end(store, run)
    (event,) = await store.read(lambda view: view.events(EventQuery()))
    happening = Happening(what="ended", event=event, run=run, maybe_sent=True)
    told = notice_of(
        [happening],
        link_to=lambda card: f"/{card}",
        redact=lambda text: text.replace("hunter2", "…"),
    )
    (part,) = told.parts
    assert part.text.splitlines() == [
        f"run {short_id(run.id)} (demo) “use … there” succeeded",
        "(possibly a repeat: the connection was lost)",
    ]
    assert part.link == f"/{run.id}"
    await store.close()


async def test_a_podium_without_notices_makes_nothing(tmp_path: Path) -> None:
    podium = podium_in(tmp_path, said=[])
    async with notice_service(podium):
        pass
    await podium.close()
    assert not podium.folders.state.exists()
