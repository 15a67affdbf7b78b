"""A plan on a page, for the journal and for lists: what is left out is counted, never dropped."""

from __future__ import annotations

from collections.abc import Sequence

from podium.domain.plan_question import AskedCall, PlanQuestion
from podium.flows.operator.exact import digested
from podium.flows.operator.showing import one_line

LONGEST_SUMMARY = 4_000
_LONGEST_CALL = 900
_LONGEST_LIST = 300
_LONGEST_VALUE = 300
_LONGEST_NAME = 60


def summary_of(question: PlanQuestion) -> str:
    """What a yes is asked for. The whole of every argument stands in the approval itself."""
    asked = digested(one_line(question.message), _LONGEST_VALUE)
    lines = [f"plan of {_counted(len(question.calls), 'call')} for: {asked}"]
    if question.irreversible:
        tools = _as_many(question.irreversible, _LONGEST_LIST, ", ", "tool")
        lines.append(f"  cannot be undone: {tools}")
    if question.undoes:
        lines.append(f"  reverses receipt {question.undoes}")
    head = "\n".join(lines)
    calls = [_call(call) for call in question.calls]
    return f"{head}\n{_as_many(calls, LONGEST_SUMMARY - len(head), chr(10), 'call')}"


def _call(call: AskedCall) -> str:
    """A call with its arguments, long ones by beginning, end and digest."""
    given = [
        f"{_name(name)}={digested(value, _LONGEST_VALUE)}" for name, value in call.arguments.items()
    ]
    said = f"{call.tool} ({call.tier}) {_as_many(given, _LONGEST_CALL, ', ', 'argument')}"
    marks = "".join(f"\n     ! {one_line(mark.line)}" for mark in call.ungrounded)
    return f"  {call.number}. {said}".rstrip() + marks


def _name(name: str) -> str:
    return (
        name
        if name.isidentifier() and len(name) <= _LONGEST_NAME
        else digested(name, _LONGEST_NAME)
    )


def _as_many(parts: Sequence[str], longest: int, between: str, what: str) -> str:
    """The first of them, as far as there is room, and how many more there are."""
    taken, room = 0, longest - _LONGEST_NAME
    for part in parts:
        room -= len(part) + len(between)
        if room < 0:
            break
        taken += 1
    left = len(parts) - taken
    more = (
        [f"and {_counted(left, f'more {what}')}; `podium approvals ID` shows all"] if left else []
    )
    return between.join([*parts[:taken], *more])


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
