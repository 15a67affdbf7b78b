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
from tests.integration.agents.tui.rig import House
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


async def opened(house: House, kind: str, answers: ScriptedAnswers) -> str:
    kept = answers.write_to(house.root / "answers.json")
    argv = tui_command(kind, house.record(), kept)
    pane = await house.panes.open(Program(name="planner", argv=argv, cwd=house.root))
    await house.activity.follow(pane)
    return pane


def told(house: House, what: str) -> list[Happened]:
    return [each for each in happened(house.record()) if each.what == what]


async def tells(house: House, what: str, count: int = 1, text: str = "") -> None:
    await retry_until(lambda: sum(text in each.text for each in told(house, what)) >= count)


async def seen(house: House, pane: str) -> ParsedBlocks:
    columns = (await look(house.control, pane)).columns
    return read_messages("\n".join(await history(house.control, pane)), columns=columns)


async def found(house: House, pane: str, nonce: str) -> MessageBlock:
    """The message of this turn, once it is on the screen."""
    messages: list[MessageBlock] = []

    async def is_there() -> bool:
        message = awaited(nonce).find_in(await seen(house, pane))
        messages[:] = [message] if message else []
        return bool(messages)

    await retry_until(is_there)
    return messages[0]


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "kind", [*PAINTERS[::3], *map(in_soak, [*PAINTERS[1::3], *PAINTERS[2::3]])]
)
async def test_what_is_said_in_any_manner_of_painting_stands_on_the_screen(
    house: House, kind: str
) -> None:
    pane = await opened(house, kind, ScriptedAnswers(bodies=(BODY, "second")))
    for number, (nonce, body) in enumerate((("aaaa1111", BODY), ("bbbb2222", "second")), 1):
        await house.injector(pane).deliver(number, prompt(nonce))
        await tells(house, "said", number)
        assert (await found(house, pane, nonce)).body == body
    assert [each.body for each in told(house, "said")] == [BODY, "second"]


@pytest.mark.parametrize(("kind", "manner"), [("unbracketed", "reference"), ("echo", "lines")])
async def test_programs_without_bracketed_paste_answer_what_they_were_handed(
    house: House, kind: str, manner: Manner
) -> None:
    pane = await opened(house, kind, ScriptedAnswers(bodies=(BODY,)))
    await house.injector(pane, manner).deliver(1, prompt("aaaa1111"))
    assert (await found(house, pane, "aaaa1111")).body == BODY


async def test_whatever_it_says_before_only_the_block_that_is_meant_is_found(house: House) -> None:
    bodies = tuple(f"{BODY}\n{way}" for way in ANSWERING)
    pane = await opened(
        house, "composer", ScriptedAnswers(tuple(ANSWERING), bodies, think_seconds=0.0)
    )
    for number, body in enumerate(bodies, 1):
        nonce = f"aaaa{number:04}"
        await house.injector(pane).deliver(number, prompt(nonce))
        await tells(house, "state", number + 1, "ready")
        assert (await found(house, pane, nonce)).body == body


@pytest.mark.soak
async def test_one_that_dies_in_the_middle_answers_when_it_was_started_again(house: House) -> None:
    pane = await opened(house, "composer", ScriptedAnswers(("crash",), line_seconds=0.1))
    await house.injector(pane).deliver(1, prompt("aaaa1111"))
    await tells(house, "died")
    argv = tui_command("composer", house.record(), house.root / "answers.json")
    await house.panes.restart(pane, Program(name="planner", argv=argv, cwd=house.root))
    await house.injector(pane).deliver(2, NUDGE)
    assert (await found(house, pane, "aaaa1111")).body == ScriptedAnswers().bodies[0]


async def test_one_that_stops_in_the_middle_goes_on_when_its_terminal_is_resized(
    house: House,
) -> None:
    pane = await opened(house, "resizing", ScriptedAnswers(("resize",), (BODY,)))
    await house.injector(pane).deliver(1, prompt("aaaa1111"))
    await tells(house, "half")
    assert not awaited("aaaa1111").find_in(await seen(house, pane))
    await house.panes.resize(120, 40)
    assert (await found(house, pane, "aaaa1111")).body == BODY


async def test_one_that_forgot_the_block_brings_it_when_it_is_reminded(house: House) -> None:
    pane = await opened(house, "composer", ScriptedAnswers(("forgets",)))
    await house.injector(pane).deliver(1, prompt("aaaa1111"))
    await tells(house, "state", 2, "ready")
    assert not told(house, "said")
    await house.injector(pane).deliver(2, NUDGE)
    await found(house, pane, "aaaa1111")


async def test_one_that_is_stuck_is_ready_again_once_it_was_interrupted(house: House) -> None:
    pane = await opened(house, "ink", ScriptedAnswers(("stuck", "plain")))
    await house.injector(pane).deliver(1, prompt("aaaa1111"))
    await house.shows(pane, "(esc to interrupt)")
    await house.panes.press(pane, "Escape")
    await tells(house, "interrupted")
    await house.injector(pane).deliver(2, prompt("bbbb2222"))
    await found(house, pane, "bbbb2222")


async def test_one_that_asks_goes_on_when_a_person_answered(house: House) -> None:
    pane = await opened(house, "composer", ScriptedAnswers(("asks",)))
    await house.injector(pane).deliver(1, prompt("aaaa1111"))
    await house.shows(pane, "(y/n)")
    assert told(house, "state")[-1].text == "asking"
    await house.panes.press(pane, "y")
    await found(house, pane, "aaaa1111")
    await tells(house, "state", 2, "ready")


async def test_what_it_heard_and_said_is_written_down_to_the_byte(house: House) -> None:
    written = house.root / "transcript.jsonl"
    pane = await opened(house, "ink", ScriptedAnswers(bodies=(BODY,), transcript=str(written)))
    await house.injector(pane).deliver(1, prompt("aaaa1111"))
    await tells(house, "state", 2, "ready")
    text = written.read_text()
    assert [line.split('"')[3] for line in text.splitlines()] == ["user", "assistant", "end"]


def test_a_prompt_of_the_flow_tells_its_id_and_what_would_do() -> None:
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


async def test_a_planner_reports_after_its_last_plan(house: House) -> None:
    pane = await opened(house, "composer", ScriptedAnswers(plans=1))
    await house.injector(pane).deliver(1, primer("PLANNER", on_screen=True))
    await house.shows(pane, "READY")
    await house.injector(pane).deliver(2, prompt("aaaa1111"))
    await tells(house, "said")
    result = MessageBlock(to="PLANNER", type="result", id="t1-aaaa1111", body="done")
    back = result_prompt(result, awaited("bbbb2222"), on_screen=True, may_go_on=True)
    await house.injector(pane).deliver(3, back)
    await tells(house, "said", 2)
    assert [(each.to, each.type) for each in told(house, "said")] == [
        ("EXECUTER", "plan"),
        ("USER", "report"),
    ]
