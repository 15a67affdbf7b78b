"""Fake TUIs that answer: what they say can be read off their screens, and they know what they said."""

from __future__ import annotations

import pytest

from podium.agents.contract.messages import read_messages
from podium.agents.tui import Manner, Program, history, look
from podium.core.turns import AwaitedMessage, MessageBlock, ParsedBlocks
from podium.jobs.duet.prompts import NUDGE, primer, result_prompt, task_prompt
from podium.testing import retry_until
from podium.testing.fake_tuis import Happened, ScriptedAnswers, happened, tui_command
from podium.testing.fake_tuis.messages import RequestedBlock, requested_block
from tests.integration.agents.tui.tmux_harness import Harness
from tests.soaking import in_soak

BODY = "1. look at `x`\n\n2. mend:\n    if a[[0]]:\n        b()\n3. Grüße, 漢字 🙂"
PAINTERS = ["alternate", "banner", "composer", "ink", "resizing", "slow", "spinning", "wrapping"]
ANSWERING = [
    "plain", "unfenced", "wordy", "status", "partial", "malformed", "recap", "quoting", "strays", "twice",
]  # fmt: skip


def awaited(nonce: str) -> AwaitedMessage:
    return AwaitedMessage(sender="PLANNER", types=("plan",), task="t1", nonce=nonce)


def prompt(nonce: str) -> str:
    return task_prompt("mend it", awaited(nonce), on_screen=True)


async def opened(harness: Harness, kind: str, answers: ScriptedAnswers) -> str:
    kept = answers.write_to(harness.root / "answers.json")
    argv = tui_command(kind, harness.record(), kept)
    pane = await harness.panes.open(Program(name="planner", argv=argv, cwd=harness.root))
    await harness.activity.follow(pane)
    return pane


def entries_of(harness: Harness, what: str) -> list[Happened]:
    return [event for event in happened(harness.record()) if event.what == what]


async def wait_for_entries(harness: Harness, what: str, count: int = 1, text: str = "") -> None:
    await retry_until(lambda: sum(text in item.text for item in entries_of(harness, what)) >= count)


async def seen(harness: Harness, pane: str) -> ParsedBlocks:
    columns = (await look(harness.control, pane)).columns
    return read_messages("\n".join(await history(harness.control, pane)), columns=columns)


async def found(harness: Harness, pane: str, nonce: str) -> MessageBlock:
    """The message of this turn, once it is on the screen."""
    messages: list[MessageBlock] = []

    async def is_there() -> bool:
        message = awaited(nonce).find_in(await seen(harness, pane))
        messages[:] = [message] if message else []
        return bool(messages)

    await retry_until(is_there)
    return messages[0]


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "kind", [*PAINTERS[::3], *map(in_soak, [*PAINTERS[1::3], *PAINTERS[2::3]])]
)
async def test_output_in_any_manner_of_painting_appears_on_the_screen(
    harness: Harness, kind: str
) -> None:
    pane = await opened(harness, kind, ScriptedAnswers(bodies=(BODY, "second")))
    for number, (nonce, body) in enumerate((("aaaa1111", BODY), ("bbbb2222", "second")), 1):
        await harness.injector(pane).deliver(number, prompt(nonce))
        await wait_for_entries(harness, "said", number)
        assert (await found(harness, pane, nonce)).body == body
    assert [item.body for item in entries_of(harness, "said")] == [BODY, "second"]


@pytest.mark.parametrize(("kind", "manner"), [("unbracketed", "reference"), ("echo", "lines")])
async def test_programs_without_bracketed_paste_answer_what_they_were_handed(
    harness: Harness, kind: str, manner: Manner
) -> None:
    pane = await opened(harness, kind, ScriptedAnswers(bodies=(BODY,)))
    await harness.injector(pane, manner).deliver(1, prompt("aaaa1111"))
    assert (await found(harness, pane, "aaaa1111")).body == BODY


async def test_whatever_it_says_before_only_the_block_that_is_meant_is_found(
    harness: Harness,
) -> None:
    bodies = tuple(f"{BODY}\n{way}" for way in ANSWERING)
    pane = await opened(
        harness, "composer", ScriptedAnswers(tuple(ANSWERING), bodies, think_seconds=0.0)
    )
    for number, body in enumerate(bodies, 1):
        nonce = f"aaaa{number:04}"
        await harness.injector(pane).deliver(number, prompt(nonce))
        await wait_for_entries(harness, "state", number + 1, "ready")
        assert (await found(harness, pane, nonce)).body == body


@pytest.mark.soak
async def test_one_that_dies_in_the_middle_answers_when_it_was_started_again(
    harness: Harness,
) -> None:
    pane = await opened(harness, "composer", ScriptedAnswers(("crash",), line_seconds=0.1))
    await harness.injector(pane).deliver(1, prompt("aaaa1111"))
    await wait_for_entries(harness, "died")
    argv = tui_command("composer", harness.record(), harness.root / "answers.json")
    await harness.panes.restart(pane, Program(name="planner", argv=argv, cwd=harness.root))
    await harness.injector(pane).deliver(2, NUDGE)
    assert (await found(harness, pane, "aaaa1111")).body == ScriptedAnswers().bodies[0]


async def test_one_that_stops_in_the_middle_goes_on_when_its_terminal_is_resized(
    harness: Harness,
) -> None:
    pane = await opened(harness, "resizing", ScriptedAnswers(("resize",), (BODY,)))
    await harness.injector(pane).deliver(1, prompt("aaaa1111"))
    await wait_for_entries(harness, "half")
    assert not awaited("aaaa1111").find_in(await seen(harness, pane))
    await harness.panes.resize(120, 40)
    assert (await found(harness, pane, "aaaa1111")).body == BODY


async def test_one_that_forgot_the_block_brings_it_when_it_is_reminded(harness: Harness) -> None:
    pane = await opened(harness, "composer", ScriptedAnswers(("forgets",)))
    await harness.injector(pane).deliver(1, prompt("aaaa1111"))
    await wait_for_entries(harness, "state", 2, "ready")
    assert not entries_of(harness, "said")
    await harness.injector(pane).deliver(2, NUDGE)
    await found(harness, pane, "aaaa1111")


async def test_one_that_is_stuck_is_ready_again_once_it_was_interrupted(harness: Harness) -> None:
    pane = await opened(harness, "ink", ScriptedAnswers(("stuck", "plain")))
    await harness.injector(pane).deliver(1, prompt("aaaa1111"))
    await harness.shows(pane, "(esc to interrupt)")
    await harness.panes.press(pane, "Escape")
    await wait_for_entries(harness, "interrupted")
    await harness.injector(pane).deliver(2, prompt("bbbb2222"))
    await found(harness, pane, "bbbb2222")


async def test_one_that_asks_goes_on_when_a_person_answered(harness: Harness) -> None:
    pane = await opened(harness, "composer", ScriptedAnswers(("asks",)))
    await harness.injector(pane).deliver(1, prompt("aaaa1111"))
    await harness.shows(pane, "(y/n)")
    assert entries_of(harness, "state")[-1].text == "asking"
    await harness.panes.press(pane, "y")
    await found(harness, pane, "aaaa1111")
    await wait_for_entries(harness, "state", 2, "ready")


async def test_its_input_and_output_are_recorded_to_the_byte(harness: Harness) -> None:
    written = harness.root / "transcript.jsonl"
    pane = await opened(harness, "ink", ScriptedAnswers(bodies=(BODY,), transcript=str(written)))
    await harness.injector(pane).deliver(1, prompt("aaaa1111"))
    await wait_for_entries(harness, "state", 2, "ready")
    text = written.read_text()
    assert [line.split('"')[3] for line in text.splitlines()] == ["user", "assistant", "end"]


def test_prompt_of_the_flow_states_its_id_and_the_acceptable_answers() -> None:
    assert requested_block(prompt("aaaa1111")) == RequestedBlock(
        "t1-aaaa1111", (("EXECUTER", "plan"),), fenced=True, allows_text=False
    )
    result = MessageBlock(to="PLANNER", type="result", id="t1-00000000", body="done")
    on_screen = result_prompt(result, awaited("bbbb2222"), on_screen=True, may_go_on=True)
    forms = (("USER", "report"), ("EXECUTER", "plan"))
    assert requested_block(on_screen) == RequestedBlock(
        "t1-bbbb2222", forms, fenced=True, allows_text=False
    )
    last = result_prompt(result, awaited("bbbb2222"), on_screen=False, may_go_on=False)
    assert requested_block(last) == RequestedBlock(
        "t1-bbbb2222", (), fenced=False, allows_text=True
    )
    assert requested_block(primer("PLANNER", on_screen=True)) is None


async def test_a_planner_reports_after_its_last_plan(harness: Harness) -> None:
    pane = await opened(harness, "composer", ScriptedAnswers(plans=1))
    await harness.injector(pane).deliver(1, primer("PLANNER", on_screen=True))
    await harness.shows(pane, "READY")
    await harness.injector(pane).deliver(2, prompt("aaaa1111"))
    await wait_for_entries(harness, "said")
    result = MessageBlock(to="PLANNER", type="result", id="t1-aaaa1111", body="done")
    back = result_prompt(result, awaited("bbbb2222"), on_screen=True, may_go_on=True)
    await harness.injector(pane).deliver(3, back)
    await wait_for_entries(harness, "said", 2)
    assert [(item.to, item.type) for item in entries_of(harness, "said")] == [
        ("EXECUTER", "plan"),
        ("USER", "report"),
    ]
