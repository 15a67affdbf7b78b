"""Checks of a run that was killed and resumed, compared with one that was not disturbed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from tests.integration.playbook.killing.kill_harness import Performance
from tests.integration.playbook.playbook_harness import of_type

Line = dict[str, Any]

AROUND = (
    "run_started",
    "step_started",
    "agent_progressed",
    "tool_in_doubt",
    "tool_resolved",
    "run_needed_human",
)
"""What a run may have more or less of when it was killed. All else happens as it does in peace."""
REQUESTED, ENDS = "tool_requested", ("tool_completed", "tool_failed")
UNREPEATABLE = "run_command"


def check(killed: Performance, peaceful: Performance) -> None:
    """Fails with the first thing that a kill has changed in a conversation that Podium keeps."""
    check_acts(killed, peaceful)
    trace = killed.trace
    _check_story(trace, peaceful.trace)
    _check_answers(killed)
    _check_usage(trace)
    assert not _output(trace) - _output(peaceful.trace), "something was told twice"


def check_acts(killed: Performance, peaceful: Performance) -> None:
    """The same was done in the end, each call once, and the trace tells of it without a gap."""
    last = killed.lives[-1]
    assert last.code == 0, last.err
    assert killed.files() == peaceful.files()
    trace = killed.trace
    assert [line["seq"] for line in trace] == list(range(1, len(trace) + 1))
    durable = [item for life in killed.lives for item in life.durable]
    assert [line["type"] for line in trace] == durable
    _check_calls(trace)
    _check_doubts(killed)


def _check_story(trace: Sequence[Line], peaceful: Sequence[Line]) -> None:
    """All that counts happened once, in the order of the peaceful run."""
    assert list(_story(trace)) == list(_story(peaceful))


def _story(trace: Sequence[Line]) -> Iterable[tuple[str, str]]:
    undone = _undone(trace)
    for line in trace:
        if line["type"] in AROUND:
            continue
        what = str(line.get("call", line.get("step", ""))).removeprefix(line["run"])
        if line["type"] == "model_answered":
            what = f"{line['step']} {line['answer']['number']}"
        if line["type"] == REQUESTED and undone[line["call"]]:
            undone[line["call"]] -= 1
            continue
        yield line["type"], what


def _undone(trace: Sequence[Line]) -> Counter[str]:
    """Requests by call that came to nothing, as a person has said."""
    resolved = of_type(trace, "tool_resolved")
    return Counter(line["call"] for line in resolved if not line["happened"])


def _check_calls(trace: Sequence[Line]) -> None:
    requested = Counter(line["call"] for line in of_type(trace, REQUESTED)) - _undone(trace)
    ended = Counter(line["call"] for line in of_type(trace, *ENDS))
    refused = Counter(line["call"] for line in of_type(trace, "tool_refused"))
    assert requested == ended
    assert set((requested + refused).values()) == {1}
    assert not set(requested) & set(refused)


def _check_doubts(killed: Performance) -> None:
    """A person is asked about what must not be done twice, when it was under way, and about nothing else."""
    trace, under_way, number = killed.trace, set(), 0
    for life in killed.lives:
        number += len(life.durable)
        if life.died:
            under_way |= _open_calls(trace[:number])
    assert set(killed.doubts) == under_way


def _open_calls(trace: Sequence[Line]) -> set[str]:
    """Calls of the tool that cannot be repeated, whose end is not known."""
    requested = of_type(trace, REQUESTED)
    begun = {line["call"] for line in requested if line["tool"] == UNREPEATABLE}
    return begun - {line["call"] for line in of_type(trace, *ENDS)}


def _check_answers(killed: Performance) -> None:
    """Only an answer that was under way is asked for again."""
    kept = 0
    for life in killed.lives:
        answered = life.durable.count("model_answered")
        assert life.asked == list(range(kept, kept + len(life.asked)))
        assert len(life.asked) - answered in ((0, 1) if life.died else (0,))
        kept += answered
    answers = of_type(killed.trace, "model_answered")
    assert [line["answer"]["number"] for line in answers] == list(range(kept))


def _check_usage(trace: Sequence[Line]) -> None:
    (recorded,) = [
        line for line in of_type(trace, "usage_recorded") if line["source"].startswith("agent:")
    ]
    answers = [line["answer"]["usage"] for line in of_type(trace, "model_answered")]
    for measure in ("input_tokens", "output_tokens"):
        assert recorded["usage"][measure] == sum(answer[measure] for answer in answers)
    assert recorded["usage"]["turns"] == 1


def _output(trace: Sequence[Line]) -> Counter[tuple[str, str]]:
    return Counter((line["kind"], line["text"]) for line in of_type(trace, "agent_progressed"))
