"""The chat door: who is heard, what they may say, and that nothing is done twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from podium.app.work_request import asked_by
from podium.core.decisions import ApprovalStatus
from podium.core.ids import short_id
from podium.core.model import Json
from podium.core.work import RunStatus
from podium.ports import RunQuery
from podium.testing import retry_until
from podium.web.chat.webhooks import STILL_AT_IT
from tests.integration.web.chat_harness import (
    ANN,
    BOB,
    CHAT,
    EVE,
    TELEGRAM_SECRET,
    ChatStage,
    chatting,
    command,
    update,
)

SCRIPTED = """
agents: {fast: {kind: scripted, script: script.yaml}}
roles: {developer: {agent: fast}}
flows: {operator: {pack: roofing}}
"""


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[ChatStage]:
    async with chatting(tmp_path) as stage:
        yield stage


async def test_a_yes_from_a_chat_is_the_persons_own(stage: ChatStage) -> None:
    run, asked = await stage.asked()
    messages = await stage.telegram(f"APPROVE: {short_id(asked.id)}")
    done, left = messages.splitlines()
    assert done == f"Approved {short_id(asked.id)}: write a.txt"
    assert f"`podium resume {short_id(run.id)}`" in left
    known = await stage.approval(asked)
    assert known.status is ApprovalStatus.GRANTED
    assert [grant.by for grant in known.grants] == ["ann"]


async def test_second_approval_is_reported_as_a_second_one(stage: ChatStage) -> None:
    _, asked = await stage.asked()
    await stage.telegram(f"APPROVE: {asked.id}")
    again = await stage.telegram(f"/approve@podium_bot {asked.id}")
    assert again == f"Not done: approval {asked.id} is granted already"


async def test_an_answer_for_a_run_that_has_ended_says_so(stage: ChatStage) -> None:
    run, asked = await stage.asked()
    store = await stage.podium.store()
    ended = run.model_copy(update={"status": RunStatus.SUCCEEDED})
    await store.write(lambda tx: tx.save_run(ended))
    for words in (f"APPROVE: {asked.id}", f"reject {asked.id} no"):
        messages = await stage.telegram(words)
        assert messages.startswith(f"Not done: approval {asked.id} is closed: run ")
        assert "before the approval was answered, and nothing was done" in messages


async def test_a_no_needs_a_reason_and_keeps_it(stage: ChatStage) -> None:
    _, asked = await stage.asked()
    assert await stage.telegram(f"reject {short_id(asked.id)}") == "Write a reason after the id."
    messages = await stage.telegram(f"reject {short_id(asked.id)} not before the release")
    assert messages.startswith("Rejected")
    known = await stage.approval(asked)
    assert (known.rejected_by, known.why) == ("ann", "not before the release")


async def test_who_only_looks_starts_and_answers_nothing(stage: ChatStage) -> None:
    run, asked = await stage.asked()
    for text, role in (
        ("run tidy up", "operator"),
        ("ask how many", "operator"),
        (f"APPROVE: {asked.id}", "approver"),
        (f"reject {asked.id} no", "approver"),
        (f"answer {asked.id} yes", "approver"),
    ):
        messages = await stage.telegram(text, sender=BOB)
        assert messages.startswith(f"Not done: bob does not have the role {role}"), messages
    assert (await stage.approval(asked)).status is ApprovalStatus.PENDING
    status = await stage.telegram("status", sender=BOB)
    assert status.splitlines() == [
        f"waiting: T3 {short_id(asked.id)} write a.txt",
        f"active: run {short_id(run.id)} (demo) waiting a task",
    ]
    assert (await stage.telegram(f"status {short_id(asked.id)}", sender=BOB)).startswith(
        f"run {short_id(run.id)} (demo) waiting"
    )


async def test_a_stranger_gets_nothing_and_is_noted_once(stage: ChatStage) -> None:
    _, asked = await stage.asked()
    for _ in range(3):
        assert await stage.telegram(f"APPROVE: {asked.id}", sender=EVE) == ""
    assert (await stage.approval(asked)).status is ApprovalStatus.PENDING
    assert stage.messages == [
        f"chat: telegram sender '{EVE}' is not listed in `senders`; the message was ignored"
    ]


async def test_a_task_and_a_message_become_runs_of_whoever_wrote_them(tmp_path: Path) -> None:
    async with chatting(tmp_path, project=SCRIPTED) as stage:
        await begin_repository(stage.podium.folders.project)
        tidy = await answered(stage, "run tidy the readme", 501)
        asked = await answered(stage, "ask Create an invoice for job JOB-1", 502)
        unclear = await answered(stage, "ask show all leads", 503)
        store = await stage.podium.store()
        operator, pipeline = await store.read(lambda view: view.runs(RunQuery()))
    assert (pipeline.flow, pipeline.task, asked_by(pipeline)) == (
        "pipeline",
        "tidy the readme",
        "ann",
    )
    assert (operator.flow, asked_by(operator)) == ("operator", "ann")
    assert tidy.startswith(f"Run {short_id(pipeline.id)} is queued.")
    first, what, yes = asked.splitlines()
    assert first == f"Awaiting approval, run {short_id(operator.id)}."
    assert what == "T3: invoice.create (T3) job_id=JOB-1"
    assert yes.startswith("APPROVE: ")
    assert unclear.startswith("Clarify.\nWhich stage")


async def answered(stage: ChatStage, text: str, update_id: int) -> str:
    """Return the final answer to a message: a service that asks again gets it."""

    async def page_text() -> str:
        messages = await stage.telegram(text, update_id=update_id)
        return "" if messages == STILL_AT_IT else messages

    return await retry_until(page_text)


async def begin_repository(folder: Path) -> None:
    for words in (
        "init -q -b main",
        "-c user.name=a -c user.email=a@b.c commit -q --allow-empty -m a",
    ):
        git = await asyncio.create_subprocess_exec("git", "-C", str(folder), *words.split())
        assert await git.wait() == 0


@pytest.mark.soak
async def test_help_and_nonsense_are_answered_with_the_available_commands(stage: ChatStage) -> None:
    help_output = await stage.telegram("help")
    assert "APPROVE: ID" in help_output
    assert help_output in await stage.telegram("rm -rf /")
    assert await stage.telegram("run") == "Write it as `run TASK`."


async def test_an_update_without_the_secret_is_refused(stage: ChatStage) -> None:
    _, asked = await stage.asked()
    for secret in (None, "", "wrong", "tele-gram-secre", "té"):
        answer = await stage.post_telegram(update(f"APPROVE: {asked.id}", ANN, 1), secret)
        assert answer.status_code == 401, secret
    assert (await stage.approval(asked)).status is ApprovalStatus.PENDING


async def test_an_update_that_is_sent_again_is_answered_the_same_and_done_once(
    stage: ChatStage,
) -> None:
    _, asked = await stage.asked()
    first = await stage.telegram(f"APPROVE: {asked.id}", update_id=9)
    assert first.startswith("Approved")
    assert await stage.telegram(f"APPROVE: {asked.id}", update_id=9) == first


@pytest.mark.soak
async def test_an_update_is_known_again_after_a_restart(tmp_path: Path) -> None:
    async with chatting(tmp_path) as stage:
        _, asked = await stage.asked()
        first = await stage.telegram(f"APPROVE: {asked.id}", update_id=9)
    async with chatting(tmp_path) as stage:
        assert await stage.telegram(f"APPROVE: {asked.id}", update_id=9) == first


async def test_of_many_at_once_one_approval_counts_and_the_others_are_notified(
    stage: ChatStage,
) -> None:
    _, asked = await stage.asked()
    messages = await asyncio.gather(*(stage.telegram(f"APPROVE: {asked.id}") for _ in range(8)))
    assert sum(item.startswith("Approved") for item in messages) == 1
    assert sum("is granted already" in item for item in messages) == 7


PASSED_OVER: tuple[Json, ...] = (
    None,
    [],
    "x",
    {"update_id": 1},
    {"update_id": 1, "message": {}},
    {"update_id": "1", "message": {"from": {"id": ANN}, "chat": {"id": 1}, "text": "help"}},
    {"update_id": 1, "message": {"from": {"id": [1]}, "chat": {"id": 1}, "text": "help"}},
    {"update_id": 1, "edited_message": update("help", ANN, 1)["message"]},
    {"update_id": 1, "message": {**update("help", ANN, 1)["message"], "forward_date": 1}},
    {"update_id": 1, "message": {"from": {"id": ANN}, "chat": {"id": 1}, "photo": []}},
)


async def test_what_is_no_new_message_in_words_is_passed_over(stage: ChatStage) -> None:
    for body in PASSED_OVER:
        answer = await stage.post_telegram(body)
        assert (answer.status_code, answer.json()) == (200, {}), body


async def test_a_body_that_is_no_json_or_too_large_is_refused(stage: ChatStage) -> None:
    headers = {"X-Telegram-Bot-Api-Secret-Token": TELEGRAM_SECRET}
    for content, status in ((b"{" * 50_000, 200), (b"[" * 60_000, 200), (b"[" * 100_000, 413)):
        answer = await stage.client.post("/chat/telegram", content=content, headers=headers)
        assert answer.status_code == status
    assert (await stage.telegram("x" * 30_000)).startswith("The message has 30000 characters")


async def test_hostile_text_comes_back_without_what_steers_or_hides(stage: ChatStage) -> None:
    _, asked = await stage.asked("\x1b]0;owned\x07 \u202e <b>@everyone</b>")
    messages = await stage.telegram("status")
    assert "\x1b" not in messages
    assert "\u202e" not in messages
    shown = (await stage.post_discord(command("status", ANN, "i1"))).json()["data"]
    assert "<b>" not in shown["content"]
    assert "@everyone" not in shown["content"]
    assert shown["allowed_mentions"] == {"parse": []}
    messages = await stage.telegram("APPROVE: \x1b[31m';DROP-TABLE--")
    assert messages.startswith("Not done: no approval")
    assert "\x1b" not in messages
    assert TELEGRAM_SECRET not in await stage.telegram(f"APPROVE: {TELEGRAM_SECRET}")
    assert (await stage.approval(asked)).status is ApprovalStatus.PENDING


async def test_sender_who_writes_too_much_is_ignored_for_a_while(tmp_path: Path) -> None:
    async with chatting(tmp_path, user=CHAT + "  per_minute: 3\n") as stage:
        messages = [await stage.telegram("help") for _ in range(5)]
        assert [item.startswith("Too many") for item in messages] == [False] * 3 + [True] * 2
        assert "APPROVE" in await stage.telegram("help", sender=BOB)


async def test_signed_discord_message_is_accepted_and_answered_as_it_requires(
    stage: ChatStage,
) -> None:
    assert (await stage.post_discord({"type": 1})).json() == {"type": 1}
    _, asked = await stage.asked()
    body = command(f"APPROVE: {asked.id}", ANN, "i7")
    first = (await stage.post_discord(body)).json()
    assert first["type"] == 4
    assert first["data"]["content"].startswith("Approved")
    assert (await stage.post_discord(body)).json() == first
    own = {**body, "id": "i8", "data": {"name": "status", "options": []}}
    assert (await stage.post_discord(own)).json()["data"]["content"]
    assert (await stage.post_discord(command("status", EVE, "i9"))).json() == {}
    assert (await stage.post_discord({"type": 3, "id": "i10"})).json() == {}


async def test_what_discord_did_not_sign_just_now_is_refused(stage: ChatStage) -> None:
    _, asked = await stage.asked()
    body = command(f"APPROVE: {asked.id}", ANN, "i1")
    for name, value in (
        ("X-Signature-Ed25519", "00" * 64),
        ("X-Signature-Ed25519", "no hex"),
        ("X-Signature-Ed25519", ""),
        ("X-Signature-Timestamp", "1700000000"),
        ("X-Signature-Timestamp", "9" * 30),
        ("X-Signature-Timestamp", "soon"),
    ):
        answer = await stage.post_discord(body, {name: value})
        assert answer.status_code == 401, (name, value)
    for age in (3600, -3600):
        assert (await stage.post_discord(body, age_seconds=age)).status_code == 401
    assert (await stage.approval(asked)).status is ApprovalStatus.PENDING


async def test_programs_sign_their_messages_and_every_nonce_counts_once(stage: ChatStage) -> None:
    _, asked = await stage.asked()
    body = {"id": "m1", "from": str(ANN), "text": f"APPROVE: {asked.id}"}
    first = await stage.post_plain(body, nonce="a-nonce-of-mine")
    assert first.json()["text"].startswith("Approved")
    assert (await stage.post_plain(body, nonce="a-nonce-of-mine")).status_code == 401
    again = await stage.post_plain(body)
    assert again.json() == first.json()
    assert (await stage.post_plain({**body, "from": "eve"})).json() == {}
    assert (await stage.post_plain({"text": "help"})).status_code == 422


async def test_programs_that_sign_wrongly_or_late_are_refused(stage: ChatStage) -> None:
    body = {"id": "m1", "from": str(ANN), "text": "help"}
    for answer in (
        await stage.post_plain(body, secret="another"),
        await stage.post_plain(body, age_seconds=3600),
        await stage.post_plain(body, age_seconds=-3600),
        await stage.post_plain(body, nonce="short"),
        await stage.client.post("/chat/plain", json=body),
    ):
        assert answer.status_code == 401


async def test_doors_that_nobody_opened_are_not_there(tmp_path: Path) -> None:
    async with chatting(tmp_path, user="{}\n") as stage:
        for service in ("telegram", "discord", "plain"):
            assert (await stage.client.post(f"/chat/{service}", json={})).status_code == 404


async def test_a_project_opens_no_door_before_it_is_trusted(tmp_path: Path) -> None:
    chat = "chat:" + CHAT.partition("chat:")[2]
    user = "secrets: [TELEGRAM_HOOK, PLAIN_HOOK]\n"
    async with chatting(tmp_path, user=user, project=chat) as stage:
        assert (await stage.post_telegram(update("help", ANN, 1))).status_code == 404
        (words,) = stage.messages
        assert "`podium trust`" in words


async def test_a_secret_that_is_not_there_keeps_its_door_shut(tmp_path: Path) -> None:
    user = CHAT.replace("[TELEGRAM_HOOK, PLAIN_HOOK]", "[PLAIN_HOOK]")
    async with chatting(tmp_path, user=user) as stage:
        assert (await stage.post_telegram(update("help", ANN, 1))).status_code == 404
        body = {"id": "m1", "from": str(ANN), "text": "help"}
        assert (await stage.post_plain(body)).status_code == 200
        (words,) = stage.messages
        assert "'TELEGRAM_HOOK' is not declared" in words


async def test_nothing_is_begun_by_unauthorised_senders(stage: ChatStage) -> None:
    await stage.post_telegram(update("run tidy up", ANN, 1), "wrong")
    await stage.telegram("run tidy up", sender=EVE)
    await stage.telegram("run tidy up", sender=BOB)
    store = await stage.podium.store()
    assert await store.read(lambda view: view.runs(RunQuery())) == []
