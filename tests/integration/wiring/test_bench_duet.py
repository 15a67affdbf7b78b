"""`podium bench duet`: what counts as a wrong routing and a true state, and one pair that really plays."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, cast

import pytest

from podium.core.turns import MessageBlock, block_of
from podium.jobs.duet.bench.failures import Sighting, states_of, true_state
from podium.jobs.duet.bench.fake_pair import FakeSide, open_fake_pair
from podium.jobs.duet.bench.handoffs import (
    KINDS,
    WAYS,
    bench_duet,
    handoff_of,
    pairs_for,
    play_pair,
    score,
)
from podium.jobs.duet.events import MessageHeard
from podium.testing.fake_tuis import Happened

PLAN = MessageBlock(to="EXECUTER", type="plan", id="T-1", body="1. look")


class Seat(SimpleNamespace):
    """Recording of a program, without the program."""

    def happened(self) -> list[Happened]:
        return cast(list[Happened], self.told)


def planner(*told: Happened) -> FakeSide:
    return cast(FakeSide, Seat(kind="ink", told=list(told)))


def executer(folder: Path, *taken: str, told: tuple[Happened, ...] = ()) -> FakeSide:
    record = folder / "executer.jsonl"
    record.write_text("".join(json.dumps(text) + "\n" for text in taken))
    return cast(FakeSide, Seat(kind="slow", record=record, told=list(told)))


def happening(**fields: Any) -> Happened:
    return Happened(
        **{
            "at": 2.0,
            "what": "said",
            "text": PLAN.id,
            **PLAN.model_dump(include={"to", "type", "body"}),
            **fields,
        }
    )


def received(message: MessageBlock = PLAN) -> MessageHeard:
    return MessageHeard(leg=0, sender="PLANNER", message=message, routed_to="EXECUTER")


ASKED = Happened(1.0, "asked", PLAN.id)
FORWARDED = f"A plan:\n\n{block_of(PLAN)}\n\nDo it."


def test_a_message_that_was_meant_and_taken_once_is_right_and_exact(tmp_path: Path) -> None:
    marked = handoff_of(
        received(), planner(ASKED, happening()), executer(tmp_path, FORWARDED), ["plain"]
    )
    assert (marked.wrong, marked.exact, marked.way) == (False, True, "plain")


def test_the_same_body_in_an_earlier_task_is_no_second_copy(tmp_path: Path) -> None:
    taken = executer(tmp_path, FORWARDED, FORWARDED)
    sender = planner(ASKED, happening())
    assert handoff_of(received(), sender, taken, ["plain"], since=0).wrong
    assert not handoff_of(received(), sender, taken, ["plain"], since=1).wrong


def test_a_body_that_came_otherwise_is_not_exact(tmp_path: Path) -> None:
    taken = executer(tmp_path, FORWARDED)
    marked = handoff_of(received(), planner(ASKED, happening(body="1.  look")), taken, ["plain"])
    assert (marked.wrong, marked.exact) == (False, False)


@pytest.mark.parametrize(
    "told", [(), (happening(text="T-2"),), (happening(to="USER"),), (happening(type="result"),)]
)
def test_what_its_sender_did_not_mean_as_its_answer_is_routed_wrongly(
    tmp_path: Path, told: tuple[Happened, ...]
) -> None:
    taken = executer(tmp_path, FORWARDED)
    assert handoff_of(received(), planner(ASKED, *told), taken, ["plain"]).wrong


@pytest.mark.parametrize("copies", [0, 2])
def test_what_did_not_arrive_exactly_once_is_routed_wrongly(tmp_path: Path, copies: int) -> None:
    taken = executer(tmp_path, *[FORWARDED] * copies)
    assert handoff_of(received(), planner(ASKED, happening()), taken, ["plain"]).wrong


def test_what_a_program_was_given_again_because_it_died_counts_once(tmp_path: Path) -> None:
    died = (Happened(3.0, "died"),)
    taken = executer(tmp_path, FORWARDED, FORWARDED, told=died)
    assert not handoff_of(received(), planner(ASKED, happening()), taken, ["plain"]).wrong


def test_enters_are_counted_per_message_that_a_kind_took() -> None:
    took = [Happened(1.0, "took", enters=3), Happened(2.0, "took", enters=2)]
    assert score("ink", [], [planner(*took)]).enters == 2.5


def test_a_state_counts_once_it_has_lasted_for_a_while() -> None:
    states = [(1.0, "busy"), (5.0, "ready")]
    assert true_state(states, Sighting("planner", 3.0, 3.1, "busy")) == "busy"
    assert true_state(states, Sighting("planner", 1.1, 1.2, "busy")) is None, "it has just begun"
    assert true_state(states, Sighting("planner", 4.9, 5.1, "busy")) is None, "it changed meanwhile"
    assert true_state(states, Sighting("planner", 0.5, 0.6, "ready")) is None, "nothing is known"


def test_only_a_program_that_was_not_started_again_is_truly_dead() -> None:
    died, ready = Happened(2.0, "died"), Happened(3.0, "state", "ready")
    assert states_of([died, ready]) == [(2.0, ""), (3.0, "ready")]
    assert states_of([ready, died._replace(at=4.0)]) == [(3.0, "ready"), (4.0, "dead")]
    late = Sighting("planner", 2.9, 2.95, "starting")
    assert true_state(states_of([died, ready]), late) is None


def test_every_kind_sits_on_either_side_equally_often() -> None:
    for handoffs in (1, 1000, 5000):
        pairs = pairs_for(handoffs)
        assert len(pairs) == len(set(pairs))
        for side in (0, 1):
            counts = [[pair[side] for pair in pairs].count(kind) for kind in KINDS]
            assert len(set(counts)) == 1


@pytest.mark.soak
async def test_fake_pair_plays_tasks_and_all_its_output_arrives() -> None:
    if shutil.which("tmux") is None:
        pytest.skip("no tmux on this machine; `sh scripts/need tmux` installs it")
    with TemporaryDirectory(prefix="pb-") as folder:
        async with open_fake_pair(Path(folder) / "1") as pair:
            played = await play_pair(pair, ("ink", "echo"), handoffs=5)
    assert (played.failed, played.hangs) == ((), 0)
    assert [(handoff.sender, handoff.receiver, handoff.way) for handoff in played.handoffs] == [
        ("ink", "echo", WAYS[0]),
        ("echo", "ink", WAYS[0]),
        ("ink", "echo", WAYS[1]),
        ("echo", "ink", WAYS[1]),
        ("ink", "", WAYS[2]),
    ]
    assert all(handoff.exact and not handoff.wrong for handoff in played.handoffs)


@pytest.mark.soak
async def test_a_thousand_handoffs_without_a_wrong_one_or_a_silent_hang() -> None:
    found = await bench_duet(1000, print)
    assert found.handoffs >= 1000
    assert (found.wrong, found.hangs, found.failed) == (0, 0, ())
    assert found.passed
