"""A task between planner and executer: who is told what, and what counts as an answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from podium.agents.contract.messages import read_messages
from podium.core.errors import TimedOut
from podium.core.turns import MessageBlock, Reply, Side, Turn, block_of
from podium.core.work import RunStatus
from podium.jobs.duet import primer
from podium.jobs.duet.events import BlockIgnored, LegOpened, MessageHeard, PairSeated, SideNudged
from podium.jobs.duet.models import DUET, DuetJob
from podium.jobs.duet.prompts import role_prompt
from podium.testing import retry_until
from tests.unit.flows.duet.duet_harness import Hall, pair, plans, results, says

REPORT = "All tidy now."


@pytest.fixture
async def hall(tmp_path: Path) -> AsyncIterator[Hall]:
    hall = Hall(tmp_path)
    yield hall
    await hall.close()


async def test_a_task_goes_to_the_planner_its_plan_to_the_executer_and_the_result_back(
    hall: Hall,
) -> None:
    hall.cast([plans("1. sweep\n2. wipe"), REPORT], [results("swept and wiped")])
    done = await hall.play()
    assert done.status is RunStatus.SUCCEEDED
    result = done.result
    assert isinstance(result, dict)
    assert (result["done"], result["report"], result["rounds"]) == (True, REPORT, 1)
    task, forwarded, back = (
        hall.planner.turns[0],
        hall.executer.turns[0],
        hall.planner.turns[1],
    )
    assert "tidy up" in task.prompt
    assert "1. sweep\n2. wipe" in forwarded.prompt
    assert "swept and wiped" in back.prompt


async def test_the_state_table_and_every_routing_decision_are_in_the_journal(hall: Hall) -> None:
    hall.cast([plans(), REPORT], [results()])
    run = await hall.play()
    legs = [
        item.leg for item in await hall.events(run, "leg_opened") if isinstance(item, LegOpened)
    ]
    assert [(leg.expected_from, leg.expected) for leg in legs] == [
        ("PLANNER", ("plan", "report")),
        ("EXECUTER", ("result",)),
        ("PLANNER", ("report", "plan")),
    ]
    output = await hall.events(run, "message_heard")
    assert [item.routed_to for item in output if isinstance(item, MessageHeard)] == [
        "EXECUTER",
        "PLANNER",
        "USER",
    ]
    [reserve_pair] = await hall.events(run, "pair_seated")
    assert isinstance(reserve_pair, PairSeated)
    assert reserve_pair.pair == "main"


async def test_no_prompt_holds_the_id_that_its_answer_must_have(hall: Hall) -> None:
    hall.on_screen = True
    hall.cast(
        [plans(), says("report", "USER", REPORT)],
        [says("blocker", "USER", "x"), results()],
    )
    engine = hall.open()
    job = DuetJob(text="tidy up", pairs=(pair(),))
    run = await engine.start(DUET, job.model_dump(mode="json"))
    assert (await engine.finish(run.id)).status is RunStatus.NEEDS_HUMAN
    await hall.stop(engine)
    engine = hall.open()
    await engine.resume(run.id, note="do it")
    assert (await engine.finish(run.id)).status is RunStatus.SUCCEEDED
    turns = [*hall.planner.turns, *hall.executer.turns]
    assert len(turns) == 4
    for turn in turns:
        assert turn.awaits is not None
        assert turn.awaits.id not in turn.prompt
        assert turn.awaits.nonce not in turn.prompt
    assert len({turn.awaits.nonce for turn in turns if turn.awaits}) == 4


async def test_off_screen_every_message_has_one_id_whole_and_right(hall: Hall) -> None:
    hall.keeps_conversation = False
    hall.cast(
        ["no block", plans("first"), plans("second"), REPORT], [results("one"), results("two")]
    )
    assert (await hall.play(rounds=2)).status is RunStatus.SUCCEEDED
    for turn in (*hall.planner.turns, *hall.executer.turns):
        assert turn.awaits is not None
        assert turn.prompt.count(f'ID = "{turn.awaits.id}"') == 1
        assert turn.prompt.count(turn.awaits.task) == 1, "another id stands beside it"


async def test_a_part_that_comes_with_a_task_asks_for_no_other_answer(hall: Hall) -> None:
    hall.keeps_conversation = False
    hall.cast([plans(), REPORT], [results()])
    await hall.play()
    for turn in (*hall.planner.turns, *hall.executer.turns):
        assert "READY" not in turn.prompt
        assert turn.prompt.count("<PLAN>\n…") + turn.prompt.count("<RESULT>\n…") == 1
    assert "answer with the word READY" in primer("PLANNER", on_screen=False)


async def test_every_side_is_informed_whether_it_may_act(hall: Hall) -> None:
    hall.keeps_conversation = False
    hall.cast([plans(), REPORT], [results()])
    await hall.play()
    assert "Change nothing yourself" in hall.planner.turns[0].prompt
    assert "You may read and change files" in hall.executer.turns[0].prompt
    assert '"to":"USER","type":"report"' in hall.planner.turns[0].prompt
    assert "Change nothing yourself" in primer("PLANNER", on_screen=True)
    hall.allowed_tools = ()
    hall.cast([plans(), REPORT], [results()])
    await hall.play()
    assert (
        "You have no tools: put everything that has to be inspected" in hall.planner.turns[0].prompt
    )
    assert "You have no tools: say in your result" in hall.executer.turns[0].prompt


@pytest.mark.parametrize("side", ["PLANNER", "EXECUTER"])
def test_side_is_shown_calls_waiting_for_a_person_where_it_has_tools(side: Side) -> None:
    output = primer(side, on_screen=True)
    assert "avoid unnecessary ones" in output
    assert "waits for a person's approval, end the turn without a final block" in output
    assert "approval" not in role_prompt(side, has_tools=False)


def test_status_and_blocker_have_a_form_that_is_read() -> None:
    messages = read_messages(primer("EXECUTER", on_screen=False).replace("<ID>", "t-1"))
    assert [(message.to, message.type) for message in messages.messages] == [
        ("PLANNER", "result"),
        ("USER", "status"),
        ("USER", "blocker"),
    ]
    assert not messages.ignored


@pytest.mark.parametrize("on_screen", [False, True])
async def test_a_turn_that_goes_on_after_an_approval_keeps_its_id(
    hall: Hall, on_screen: bool
) -> None:
    hall.on_screen = on_screen
    waits = Reply(text="I wait.", waiting_approvals=("apr_unknown",), session="s1")
    report = says("report", "USER", "done")
    hall.cast([plans(), report], [waits, results()])
    assert (await hall.play()).status is RunStatus.SUCCEEDED
    asked, again = hall.executer.turns
    assert asked.awaits is not None
    assert asked.awaits == again.awaits
    [line] = [line for line in asked.prompt.splitlines() if line.startswith("ID = ")]
    assert line in again.news.splitlines()
    assert "end with its `result` block. The id stays the same." in again.news
    assert (asked.awaits.id in again.news) is not on_screen


async def test_a_report_is_asked_for_before_another_plan_and_its_form(hall: Hall) -> None:
    hall.cast([plans(), REPORT], [results()])
    await hall.play(rounds=2)
    report, only_if, form = (
        hall.planner.turns[1].prompt.index(text)
        for text in ("without any POLI block.", "Only if EXECUTER must do more", "ID = ")
    )
    assert report < only_if < form


async def test_a_planner_may_plan_again_until_its_rounds_are_used_up(hall: Hall) -> None:
    hall.cast([plans("first"), plans("second"), REPORT], [results("one"), results("two")])
    done = await hall.play(rounds=2)
    assert isinstance(done.result, dict)
    assert done.result["rounds"] == 2
    assert "This was the last round" in hall.planner.turns[2].prompt
    assert "This was the last round" not in hall.planner.turns[1].prompt


async def test_a_plan_beyond_the_last_round_is_not_carried_out(hall: Hall) -> None:
    hall.cast([plans(), plans("again"), plans("and again")], [results()])
    done = await hall.play(rounds=1)
    assert done.status is RunStatus.FAILED
    assert len(hall.executer.turns) == 1


async def test_a_planner_that_needs_nobody_reports_at_once(hall: Hall) -> None:
    hall.cast([says("report", "USER", "nothing to do")], [])
    done = await hall.play()
    assert isinstance(done.result, dict)
    assert done.result["report"] == "nothing to do"


async def test_a_side_that_forgot_its_block_is_nudged_in_its_conversation(hall: Hall) -> None:
    hall.cast([Reply(text="I have a plan.", session="s7"), plans(), REPORT], [results()])
    done = await hall.play()
    assert done.status is RunStatus.SUCCEEDED
    nudge = hall.planner.turns[1]
    assert nudge.session == "s7"
    assert "it contained no tagged block" in nudge.prompt
    [output] = await hall.events(done, "side_nudged")
    assert isinstance(output, SideNudged)
    assert output.side == "PLANNER"


async def test_a_side_that_never_brings_its_block_fails_the_task_with_what_to_do(
    hall: Hall,
) -> None:
    hall.cast(["no", "still no"], [])
    done = await hall.play(nudges=1)
    assert done.failure is not None
    assert done.failure.kind == "ReplyInvalid"
    assert "PLANNER ended its turn without the `plan`" in done.failure.message
    assert "podium duet retry" in done.failure.message


@pytest.mark.parametrize(("wrong_id", "name"), [("TASK", "a bare task id"), ("new-id", "a new id")])
async def test_block_without_the_nonce_is_no_answer_and_the_agent_is_given_the_id(
    hall: Hall, wrong_id: str, name: str
) -> None:
    def wrong(turn: Turn) -> Reply:
        assert turn.awaits is not None
        given = turn.awaits.task if wrong_id == "TASK" else wrong_id
        return Reply(text=block_of(MessageBlock(to="EXECUTER", type="plan", id=given, body="x")))

    hall.cast([wrong, plans(), REPORT], [results()])
    done = await hall.play()
    assert done.status is RunStatus.SUCCEEDED, name
    assert "its id does not match this turn" in hall.planner.turns[1].prompt
    output = await hall.events(done, "message_heard")
    assert isinstance(output[0], MessageHeard)
    assert (output[0].routed_to, output[0].why) == (None, "its id does not match this turn")


async def test_the_last_of_several_blocks_counts_and_the_others_are_put_down(hall: Hall) -> None:
    def twice(turn: Turn) -> Reply:
        first, second = plans("first thought")(turn), plans("second thought")(turn)
        return Reply(text=f"{first.text}\nNo, wait.\n{second.text}")

    hall.cast([twice, REPORT], [results()])
    run = await hall.play()
    assert "second thought" in hall.executer.turns[0].prompt
    assert "first thought" not in hall.executer.turns[0].prompt
    output = await hall.events(run, "message_heard")
    assert [item.why for item in output if isinstance(item, MessageHeard)][:2] == [
        "a later block replaces it",
        "",
    ]


async def test_an_old_answer_that_is_quoted_is_not_taken_for_a_new_one(hall: Hall) -> None:
    old: list[str] = []

    def first(turn: Turn) -> Reply:
        reply = plans("old plan")(turn)
        old.append(reply.text)
        return reply

    def quoting(turn: Turn) -> Reply:
        return Reply(text=f"As I planned:\n{old[0]}\nAll of that is done.")

    hall.cast([first, quoting], [results()])
    done = await hall.play()
    assert isinstance(done.result, dict)
    assert len(hall.executer.turns) == 1, "the old plan was carried out again"
    assert "All of that is done." in done.result["report"]


async def test_a_block_that_cannot_be_read_is_put_down_and_the_agent_nudged(hall: Hall) -> None:
    hall.cast(
        ['[[POLI:MSG {"to":"EXECUTER",]]\n<PLAN>\nx\n</PLAN>\n[[/POLI:MSG]]', plans(), REPORT],
        [results()],
    )
    done = await hall.play()
    assert done.status is RunStatus.SUCCEEDED
    [ignored] = await hall.events(done, "block_ignored")
    assert isinstance(ignored, BlockIgnored)
    assert "a block could not be read" in hall.planner.turns[1].prompt


async def test_what_blocks_a_side_is_put_before_a_person_whose_words_it_goes_on_with(
    hall: Hall,
) -> None:
    hall.cast([plans(), REPORT], [says("blocker", "USER", "which shelf?"), results()])
    engine = hall.open()
    job = DuetJob(text="tidy up", pairs=(pair(),))
    run = await engine.start(DUET, job.model_dump(mode="json"))
    stuck = await engine.finish(run.id)
    assert stuck.status is RunStatus.NEEDS_HUMAN
    assert stuck.failure is not None
    assert "which shelf?" in stuck.failure.message
    await hall.stop(engine)
    engine = hall.open()
    await engine.resume(run.id, note="the upper one")
    assert (await engine.finish(run.id)).status is RunStatus.SUCCEEDED
    assert "the upper one" in hall.executer.turns[1].prompt


async def test_time_that_ran_out_says_whose_which_and_what_to_do(hall: Hall) -> None:
    hall.cast([TimedOut("nothing was heard")], [])
    done = await hall.play(plan_seconds=180)
    assert done.failure is not None
    assert done.failure.exit_code == 6
    assert "PLANNER sent no `plan` or `report` block" in done.failure.message
    assert "within 180 s: nothing was heard" in done.failure.message
    assert "podium duet retry" in done.failure.message


async def test_every_side_has_the_time_limit_of_its_leg(hall: Hall) -> None:
    hall.cast([plans(), REPORT], [results()])
    await hall.play(plan_seconds=11, result_seconds=22)
    assert [turn.limits.seconds for turn in hall.planner.turns] == [11, 11]
    assert hall.executer.turns[0].limits.seconds == 22


async def test_a_retried_leg_is_asked_anew_under_a_new_id(hall: Hall) -> None:
    hall.cast([plans(), REPORT], [TimedOut("silence"), results()])
    run = await hall.play()
    assert run.status is RunStatus.FAILED
    engine = hall.open()
    await engine.retry(run.id, from_step="leg#1")
    assert (await engine.finish(run.id)).status is RunStatus.SUCCEEDED
    first, second = (turn.awaits for turn in hall.executer.turns)
    assert first is not None
    assert second is not None
    assert first.nonce != second.nonce
    assert len(hall.planner.turns) == 2, "the plan was asked for again"


async def test_agents_without_a_lasting_conversation_are_given_their_role_first(
    hall: Hall,
) -> None:
    hall.keeps_conversation = False
    hall.cast([plans(), REPORT], [results()])
    await hall.play()
    assert hall.planner.turns[0].prompt.startswith("You are PLANNER.")
    assert hall.executer.turns[0].prompt.startswith("You are EXECUTER.")
    assert "You are PLANNER." not in hall.planner.turns[1].prompt
    assert hall.planner.turns[1].session == "s1"


async def test_two_tasks_do_not_share_a_pair(hall: Hall) -> None:
    going = asyncio.Event()

    async def slow(turn: Turn) -> Reply:
        await going.wait()
        return says("report", "USER", "done")(turn)

    hall.cast([slow, slow], [])
    engine = hall.open()
    job = DuetJob(text="tidy up", pairs=(pair(),)).model_dump(mode="json")
    first = await engine.start(DUET, job)
    await retry_until(lambda: len(hall.planner.turns) == 1)
    second = await engine.finish((await engine.start(DUET, job)).id)
    assert second.failure is not None
    assert (second.failure.kind, second.failure.exit_code) == ("LockHeld", 7)
    going.set()
    assert (await engine.finish(first.id)).status is RunStatus.SUCCEEDED


async def test_a_patient_task_waits_for_a_pair_and_another_takes_a_free_one(hall: Hall) -> None:
    going = asyncio.Event()

    async def slow(turn: Turn) -> Reply:
        await going.wait()
        return says("report", "USER", "done")(turn)

    hall.cast([slow, says("report", "USER", "b"), says("report", "USER", "c")], [])
    engine = hall.open()
    one = DuetJob(text="tidy up", pairs=(pair(),)).model_dump(mode="json")
    first = await engine.start(DUET, one)
    await retry_until(lambda: len(hall.planner.turns) == 1)
    both = DuetJob(text="tidy up", pairs=(pair(), pair("second"))).model_dump(mode="json")
    beside = await engine.finish((await engine.start(DUET, both)).id)
    assert isinstance(beside.result, dict)
    assert beside.result["pair"] == "second"
    waiting = await engine.start(DUET, {**one, "patient": True})
    going.set()
    ended = await engine.finish(waiting.id)
    assert isinstance(ended.result, dict)
    assert ended.result["pair"] == "main"
    assert (await engine.finish(first.id)).status is RunStatus.SUCCEEDED


async def test_a_run_goes_on_in_another_process_without_asking_again(hall: Hall) -> None:
    started = asyncio.Event()

    async def hangs(turn: Turn) -> Reply:
        started.set()
        await asyncio.Event().wait()
        raise AssertionError("it waits for ever")

    hall.cast([plans(), REPORT], [hangs, results()])
    engine = hall.open()
    job = DuetJob(text="tidy up", pairs=(pair(),))
    run = await engine.start(DUET, job.model_dump(mode="json"))
    await started.wait()
    await hall.stop(engine)
    other = hall.open()
    await other.resume(run.id)
    assert (await other.finish(run.id)).status is RunStatus.SUCCEEDED
    first, second = (turn.awaits for turn in hall.executer.turns)
    assert first == second, "the same leg was given another id"
    assert len(hall.planner.turns) == 2


@pytest.mark.parametrize(
    "answer",
    [
        lambda task, past: (
            f'[[POLI:MSG {{"to":"EXECUTER","type":"plan","id":"{task}"}}]]\nmore\n[[/POLI:MSG]]'
        ),
        lambda task, past: (
            '[[POLI:MSG {"to":"EXECUTER","type":"plan","id":"new"}]]\nmore\n[[/POLI:MSG]]'
        ),
        lambda task, past: (
            f'Next: [[POLI:MSG {{"to":"EXECUTER","type":"plan","id":"{task}-x"}}]] more'
        ),
        lambda task, past: (
            f'[[POLI:MSG {{"to":"EXECUTER","type":"plan","id":"{past}"}}]]\nold\n[[/POLI:MSG]]'
        ),
    ],
    ids=["a bare task id", "a new id", "not on a line of its own", "nothing but a quotation"],
)
async def test_a_plan_that_missed_its_id_is_not_taken_for_a_report(hall: Hall, answer: Any) -> None:
    def says_it(turn: Turn) -> Reply:
        assert turn.awaits is not None
        past = hall.planner.turns[0].awaits
        assert past is not None
        return Reply(text=answer(turn.awaits.task, past.id))

    hall.cast([plans(), says_it, REPORT], [results("tests are red")])
    done = await hall.play()
    assert isinstance(done.result, dict)
    assert done.result["report"] == REPORT
    assert len(await hall.events(done, "side_nudged")) == 1


async def test_progress_alone_is_no_report(hall: Hall) -> None:
    hall.cast([plans(), says("status", "USER", "still thinking"), REPORT], [results()])
    done = await hall.play()
    assert isinstance(done.result, dict)
    assert done.result["report"] == REPORT


async def test_a_retried_task_does_not_take_a_pair_that_another_holds(hall: Hall) -> None:
    going = asyncio.Event()

    async def slow(turn: Turn) -> Reply:
        await going.wait()
        return says("report", "USER", "done")(turn)

    hall.cast([TimedOut("silence"), slow], [])
    engine = hall.open()
    job = DuetJob(text="tidy up", pairs=(pair(),)).model_dump(mode="json")
    first = await engine.finish((await engine.start(DUET, job)).id)
    second = await engine.start(DUET, job)
    await retry_until(lambda: len(hall.planner.turns) == 2)
    again = await engine.finish((await engine.retry(first.id, from_step="leg")).id)
    assert again.failure is not None
    assert again.failure.kind == "LockHeld"
    going.set()
    assert (await engine.finish(second.id)).status is RunStatus.SUCCEEDED


async def test_what_an_executer_does_is_not_riskier_for_the_plan_that_led_to_it(hall: Hall) -> None:
    hall.cast([plans(), REPORT], [results()])
    await hall.play()
    assert {turn.provenance for turn in hall.executer.turns} == {()}


def test_a_body_that_has_its_section_is_not_wrapped_again() -> None:
    body = "<PLAN>\na </PLAN> b\n</PLAN>"
    assert (
        block_of(MessageBlock(to="EXECUTER", type="plan", id="x", body=body)).count("<PLAN>") == 1
    )
