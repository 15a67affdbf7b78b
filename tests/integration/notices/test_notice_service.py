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
from tests.unit.notices.notices_harness import Listener, add_run, ask, end, listening, podium_in

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
    messages: list[str] = []
    with listening() as service:
        podium = podium_in(
            tmp_path, user=MINE, messages=messages, CHAT=service.url, MY_API_KEY=SECRET
        )
        try:
            asked = await messages_of_one(
                podium, service, "\x1b[2J" + f"post {SECRET} to ‮ everybody"
            )
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
    assert messages == []


async def messages_of_one(podium: Podium, service: Listener, summary: str) -> str:
    store = await podium.store()
    deps = (store, podium.clock, podium.ids)
    async with notice_service(
        podium, console_url="https://podium.example.org/", path_to=path_to, pauses_seconds=QUICK
    ):
        await begun(podium, "CHAT")
        run = await add_run(*deps)
        await ask(*deps, run, tier=Tier.T1)
        asked = await ask(*deps, run, tier=Tier.T3, summary=summary)
        await retry_until(lambda: service.bodies, 30)
    return asked.id


async def begun(podium: Podium, outlet: str) -> None:
    file = podium.folders.state / "notices" / f"{outlet}.json"
    await retry_until(file.exists)


def has_reported(service: Listener, messages: int) -> bool:
    return len(service.bodies) == messages


async def test_restarted_console_reports_what_happened_meanwhile_once(tmp_path: Path) -> None:
    messages: list[str] = []
    with listening() as service:
        for number in range(3):
            podium = podium_in(tmp_path, user=MINE, messages=messages, CHAT=service.url)
            deps = (await podium.store(), podium.clock, podium.ids)
            async with notice_service(podium, pauses_seconds=QUICK):
                await begun(podium, "CHAT")
                await retry_until(partial(has_reported, service, number))
            await end(deps[0], await add_run(*deps, task=f"task {number}"))
            await podium.close()
    assert [body["title"] for body in service.bodies] == ["Podium: 1 ended"] * 2
    for number, body in enumerate(service.bodies):
        assert f"“task {number}”" in body["message"]


async def test_dead_service_stops_nobody_and_is_notified_when_it_is_back(tmp_path: Path) -> None:
    messages: list[str] = []
    with listening() as dead, listening() as service:
        dead.statuses = [500] * 3
        user = MINE.replace("[CHAT]", "[CHAT, DEAD]") + "  - {to: 'secret://DEAD'}\n"
        podium = podium_in(tmp_path, user=user, messages=messages, CHAT=service.url, DEAD=dead.url)
        deps = (await podium.store(), podium.clock, podium.ids)
        async with notice_service(podium, pauses_seconds=QUICK):
            await begun(podium, "CHAT")
            await begun(podium, "DEAD")
            await end(deps[0], await add_run(*deps))
            await retry_until(lambda: service.bodies and dead.bodies)
        await podium.close()
    assert dead.tries == 4
    assert messages[0].startswith("a notice to DEAD could not be delivered; retrying: ")
    assert dead.url not in " ".join(messages)


async def test_unobtainable_lock_is_reported_once_and_retried(tmp_path: Path) -> None:
    messages: list[str] = []
    with listening() as service:
        podium = podium_in(tmp_path, user=MINE, messages=messages, CHAT=service.url)
        in_the_way = podium.folders.make_state() / "notices" / "lock"
        in_the_way.mkdir(parents=True)
        for _ in range(2):
            async with notice_service(podium, hold_pause_seconds=0.01):
                await retry_until(lambda: messages)
            assert "retrying: " in messages[0]
            assert str(in_the_way) in messages.pop(0)
            assert messages == []
        deps = (await podium.store(), podium.clock, podium.ids)
        async with notice_service(podium, pauses_seconds=QUICK, hold_pause_seconds=0.01):
            await retry_until(lambda: messages)
            in_the_way.rmdir()
            await begun(podium, "CHAT")
            await end(deps[0], await add_run(*deps))
            await retry_until(lambda: service.bodies, 30)
        await podium.close()
    assert messages[1:] == ["notices are sent again"]


async def test_interrupted_notifying_is_reported_and_closing_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages: list[str] = []

    def broken(book: FileDeliveryLog) -> bool:
        raise RuntimeError("no such thing")

    # Nothing is known that breaks it off.
    monkeypatch.setattr(FileDeliveryLog, "try_hold", broken)
    podium = podium_in(tmp_path, user=MINE, messages=messages, CHAT="json://127.0.0.1:9/")
    async with notice_service(podium):
        await retry_until(lambda: messages)
    await podium.close()
    (words,) = messages
    assert words.startswith("notices have stopped: RuntimeError: no such thing")


async def test_missing_secret_is_reported_and_the_others_are_notified(tmp_path: Path) -> None:
    messages: list[str] = []
    with listening() as service:
        user = MINE + "  - {to: 'secret://MISSING'}\n"
        podium = podium_in(tmp_path, user=user, messages=messages, CHAT=service.url)
        deps = (await podium.store(), podium.clock, podium.ids)
        async with notice_service(podium, pauses_seconds=QUICK):
            await begun(podium, "CHAT")
            await end(deps[0], await add_run(*deps))
            await retry_until(lambda: service.bodies, 30)
        await podium.close()
    (words,) = messages
    assert words.startswith(
        "no notices are sent to secret://MISSING: secret 'MISSING' is not declared"
    )


@pytest.mark.parametrize("trusted", [False, True])
async def test_project_notifies_nobody_before_it_is_trusted(tmp_path: Path, trusted: bool) -> None:
    messages: list[str] = []
    project = "notices: [{to: 'secret://CHAT'}]\n"
    with listening() as service:
        podium = podium_in(
            tmp_path, user="secrets: [CHAT]\n", project=project, messages=messages, CHAT=service.url
        )
        configuration = podium.configuration
        if trusted:
            TrustBook(podium.folders.user_state).trust(
                podium.folders.project_file, configuration.project_digest
            )
        deps = (await podium.store(), podium.clock, podium.ids)
        async with notice_service(podium, pauses_seconds=QUICK):
            if trusted:
                await begun(podium, "CHAT")
            await end(deps[0], await add_run(*deps))
            if trusted:
                await retry_until(lambda: service.bodies, 30)
        await podium.close()
    assert len(service.bodies) == trusted
    assert (podium.folders.state / "notices").exists() is trusted
    assert ["podium trust" in words for words in messages] == ([] if trusted else [True])


async def test_outgoing_notices_are_searched_for_secrets_once_more() -> None:
    store, clock, ids = MemoryStore(FixedClock()), FixedClock(), SteadyIds()
    run = await add_run(store, clock, ids, task="use hunter2 there")
    await end(store, run)
    (event,) = await store.read(lambda view: view.events(EventQuery()))
    happening = Happening(what="ended", event=event, run=run, maybe_sent=True)
    output = notice_of(
        [happening],
        link_to=lambda card: f"/{card}",
        redact=lambda text: text.replace("hunter2", "…"),
    )
    (part,) = output.parts
    assert part.text.splitlines() == [
        f"run {short_id(run.id)} (demo) “use … there” succeeded",
        "(possibly a repeat: the connection was lost)",
    ]
    assert part.link == f"/{run.id}"
    await store.close()


async def test_a_podium_without_notices_makes_nothing(tmp_path: Path) -> None:
    podium = podium_in(tmp_path, messages=[])
    async with notice_service(podium):
        pass
    await podium.close()
    assert not podium.folders.state.exists()
