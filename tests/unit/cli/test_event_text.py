"""Words for events: every kind has some, none shows what steers a terminal, all fit on a line."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, get_args

import pytest
from pydantic import AwareDatetime
from pydantic_core import PydanticUndefined

from podium.core import events as e
from podium.core.decisions import Usage
from podium.core.turns import MessageBlock, ModelAnswer, RequestedCall, TurnStop
from podium.core.work import Failure
from podium.jobs.duet.models import Hop
from podium.jobs.playbook.events import PlaybookBegan, PlaybookEnded
from podium.render.event import describe, event_line

NOW = datetime(2026, 1, 2, 10, 0, tzinfo=UTC)
HOSTILE = "\x1b]0;owned\x07\u202eevil\nnext"
KINDS = tuple(e.event_classes().values())

AS_THEY_ARE = {e.RunStarted, e.RunCancelRequested, e.RunRetried, e.FlowCodeChanged, e.SignalSent}
"""Kinds whose fields, each by its name, say all there is to say. Any other needs words of its own."""

_SAMPLES: dict[Any, Any] = {
    str: "word",
    int: 1,
    float: 1.5,
    bool: True,
    AwareDatetime: NOW,
    Failure: Failure(kind="Lost", message="it went away"),
    TurnStop: TurnStop(kind="tool_calls", reason="50 of 50 are made"),
    ModelAnswer: ModelAnswer(number=0, request="sha256:x", text="I will look"),
    Usage: Usage(),
    Hop: Hop(number=0, round=1, expected_from="PLANNER", expected=("plan",), task="t", nonce="n"),
    MessageBlock: MessageBlock(to="EXECUTER", type="plan", id="t-n", body="sweep"),
}


def sample(kind: type[e.EventBody], text: str = "word") -> e.EventBody:
    """An event of this kind with something in every field that must be given."""
    given = {
        name: _value(field.annotation, text)
        for name, field in kind.model_fields.items()
        if field.default is PydanticUndefined and field.default_factory is None
    }
    return kind.model_validate(given)


def _value(annotation: Any, text: str) -> Any:
    if annotation is str:
        return text
    if annotation in _SAMPLES:
        return _SAMPLES[annotation]
    origin = getattr(annotation, "__origin__", None)
    if origin is dict:
        return {}
    if options := get_args(annotation):  # the first of a Literal, or the type within Annotated
        first = options[0]
        return _value(first, text) if isinstance(first, type) else first
    raise AssertionError(f"say what a sample of {annotation} is")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_kind_of_event_has_words(kind: type[e.EventBody]) -> None:
    body = sample(kind)
    words = describe(body)
    assert words
    assert (f"{_first_field(kind)}=" in words) is (kind in AS_THEY_ARE), words


def _first_field(kind: type[e.EventBody]) -> str:
    return next((name for name in kind.model_fields if name not in ("type", "version")), "none")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_what_others_wrote_cannot_steer_a_terminal(kind: type[e.EventBody]) -> None:
    body = sample(kind, HOSTILE)
    event = e.Event.model_construct(run_id="run_x", seq=1, position=1, at=NOW, body=body)
    line = event_line(event)
    assert line.isprintable(), line
    assert "\u202e" not in line


def test_answer_of_a_model_shows_who_gave_it_and_what_it_asks_for() -> None:
    answer = ModelAnswer(
        number=3,
        request="sha256:x",
        text="I read it first.",
        calls=(RequestedCall(tool="read_file"), RequestedCall(tool="run_command")),
        model="gemini-x",
        usage=Usage(input_tokens=900, output_tokens=12),
    )
    body = e.ModelAnswered(step="turn#0", role="playbook", agent="gemini", answer=answer)
    assert describe(body) == (
        "playbook (gemini) gemini-x #3 asks for read_file, run_command [900 tokens in, 12 out]: "
        "I read it first."
    )


def test_a_stop_names_the_limit() -> None:
    stop = TurnStop(kind="same_results", reason="read_file gave the same 3 times")
    body = e.AgentStopped(role="playbook", agent="gemini", stop=stop)
    assert describe(body) == (
        "playbook (gemini): stopped at the limit of same results: read_file gave the same 3 times"
    )


def test_ends_of_a_playbook_report_what_it_was_given_and_what_was_proved() -> None:
    began = PlaybookBegan(
        playbook="tidy", playbook_digest="", profile="app", profile_digest="", tools=("read_file",),
        dry_run=True,
    )  # fmt: skip
    assert describe(began) == "tidy for app (dry run) with read_file"
    ended = PlaybookEnded(
        met=False,
        criteria=({"command": "make test", "met": False}, {"command": "make lint", "met": True}),
        stop=TurnStop(kind="minutes", reason="20 minutes are over"),
        changed=("a.py", "b.py"),
    )
    assert describe(ended) == (
        "NOT met, by 2 criteria; stopped at the limit of minutes: 20 minutes are over; "
        "changed a.py, b.py"
    )


def test_question_to_a_person_is_readable_on_one_line() -> None:
    summary = (
        "write_file\n  path: a.py\n  content: print(2)\n    \n    x = '\u202e'\n  writes /real/a.py"
    )
    body = e.ApprovalRequested(
        approval_id="apr_x", call="c", tool="write_file", summary=summary, digest="d", tier="T2", deadline=NOW
    )  # fmt: skip
    assert describe(body) == (
        r"apr_x [T2] write_file; path: a.py; content: print(2) ⏎ x = '\u202e'; writes /real/a.py"
    )
