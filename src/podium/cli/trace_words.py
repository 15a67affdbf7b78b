"""The rows of a trace as lines for people, to the width of their terminal."""

from __future__ import annotations

from datetime import UTC, datetime
from textwrap import wrap

from pydantic import ValidationError

from podium.cli.approval_words import arguments_line
from podium.cli.event_words import LONGEST_ARGUMENTS, about, describe, shorten
from podium.cli.screen import counted
from podium.cli.trace_folding import Data, Row, Totals, number
from podium.cli.untrusted import safe_line, shown_line
from podium.domain.events import read_body
from podium.domain.gating import canonical_json

NARROW_COLUMNS = 100
"""On a terminal with fewer columns a call is shown without its step and rule."""

LONGEST_WORDS = 2000
"""More of one event is not shown, also when piped: `--json` has it whole."""

_LEAST_ROOM = 24
_REASON_LINES = 3
_ENVELOPE = {"run", "seq", "at", "type", "version"}


class Timeline:
    """Makes a line of each row. It knows when the first event was, and which day it is."""

    def __init__(self, columns: int = 0) -> None:
        """`columns` is the width of a terminal; 0 leaves lines whole."""
        self._columns = columns
        self._first: datetime | None = None
        self._day = ""
        self._second = ("", "")

    def begins(self, data: Data) -> None:
        """Count from this event on, whether it is shown or not."""
        self._first = self._first or _moment(data)

    def header(self) -> str:
        clock = "AT".ljust(8 if self._columns else 19)
        return f"{clock} {'SINCE':>8} {'SEQ':>5} {'EVENT':<13} {'TOOK':>6} WHAT"

    def lines(self, row: Row, totals: Totals) -> str:
        """The row, on several lines where somebody has to read a reason."""
        at = _moment(row.data)
        day, clock = self._clock(at)
        front = f"{clock} {self._since(at):>8} {row.data['seq']:>5} "
        front += f"{_name(row):<13} {_took(row):>6} "
        room = self._columns - len(front) if self._columns else LONGEST_WORDS
        words = _call_words(row, room, self._columns) if row.outcome else _words(row.data, totals)
        reason = _reason(row) if row.outcome else ""
        if not self._columns:
            return front + safe_line(f"{words}: {reason}" if reason else words, LONGEST_WORDS)
        shown = safe_line(words, max(room, _LEAST_ROOM))
        said = wrap(safe_line(reason, LONGEST_WORDS), max(20, self._columns - 24))
        return day + front + shown + "".join(f"\n{'':23} {part}" for part in said[:_REASON_LINES])

    def _clock(self, at: datetime | None) -> tuple[str, str]:
        """The time of day, before it a line when another day has begun; or both where lines are whole."""
        if at is None:
            return "", "?".ljust(8 if self._columns else 19)
        second = at.isoformat(timespec="seconds")
        if second != self._second[0]:  # calling the local clock costs more than all else of a line
            self._second = (second, at.astimezone().strftime("%Y-%m-%d %H:%M:%S"))
        whole = self._second[1]
        if not self._columns:
            return "", whole
        new, self._day = self._day != whole[:10], whole[:10]
        return (f"-- {self._day}\n" if new else ""), whole[11:]

    def _since(self, at: datetime | None) -> str:
        if at is None or self._first is None:
            return ""
        return f"+{_span((at - self._first).total_seconds())}"


def totals_line(totals: Totals) -> str:
    """What there was in all."""
    open_or_doubtful = totals.calls - totals.completed - totals.failed - totals.refused
    others = f", {open_or_doubtful} not settled" if open_or_doubtful > 0 else ""
    return (
        f"{counted(totals.events, 'event')}, {counted(totals.calls, 'call')}: "
        f"{totals.completed} completed, {totals.failed} failed, {totals.refused} refused{others}; "
        f"{_spent(totals)}"
    )


def _spent(totals: Totals) -> str:
    return f"{totals.input_tokens} + {totals.output_tokens} tokens, ${totals.usd:.4f}"


def _name(row: Row) -> str:
    return row.outcome or safe_line(str(row.data["type"]), 40)


def _took(row: Row) -> str:
    seconds = row.data.get("seconds")
    return "" if seconds is None else _span(number(seconds), brief=True)


def _call_words(row: Row, room: int, columns: int) -> str:
    """Tool, arguments, step, rule and receipt; where room is short the arguments give way."""
    request = row.request or row.data
    tool = shown_line(str(row.data.get("tool", "")), 60)
    tail = _tail(row, request, brief=0 < columns < NARROW_COLUMNS)
    arguments = request.get("arguments")
    given = _arguments(arguments, brief=bool(columns)) if isinstance(arguments, dict) else ""
    left = room - len(tool) - len(tail) - 2
    if columns and len(given) > left:
        given = given[: left - 1] + "…" if left > 3 else ""
    return " ".join(part for part in (tool, given, tail) if part)


def _arguments(arguments: Data, *, brief: bool) -> str:
    if brief and (short := about(arguments)):
        return short
    try:
        return arguments_line(arguments, LONGEST_ARGUMENTS) if arguments else ""
    except (ValueError, RecursionError):  # such as a figure without end
        return "?"


def _tail(row: Row, request: Data, *, brief: bool) -> str:
    tier, rule = (shown_line(str(request.get(key) or ""), 60) for key in ("tier", "rule"))
    step = shown_line(_step(str(row.data.get("call", ""))), 60)
    decision = " ".join(part for part in (tier, "" if brief else rule) if part)
    if request.get("approval_id"):
        decision += " approval " + shown_line(shorten(str(request["approval_id"])), 40)
    receipt = row.data.get("receipt")
    parts = (
        f"in {step}" if step and not brief else "",
        f"[{decision}]" if decision else "",
        f"#{int(number(receipt))}" if receipt is not None else "",
    )
    return " ".join(part for part in parts if part)


def _step(call: str) -> str:
    """The step of a call's key, which is `run:step:digest.number`."""
    return call.partition(":")[2].rpartition(":")[0]


def _reason(row: Row) -> str:
    """Why a call did not do what it was asked for."""
    return shown_line(str(row.data.get("error") or ""), LONGEST_WORDS) or (
        _refusal(row.data) if row.data["type"] == "tool_refused" else ""
    )


def _refusal(data: Data) -> str:
    rule, reason = (shown_line(str(data.get(key) or ""), 500) for key in ("rule", "reason"))
    return f"{rule}: {reason}" if rule else reason


def _words(data: Data, totals: Totals) -> str:
    """What matters of an event that is no call. Kinds of a newer Podium are shown as they are."""
    if data["type"] in ("step_started", "step_completed") and isinstance(data.get("step"), str):
        attempt = data.get("attempt", 1)
        return data["step"] if attempt == 1 else f"{data['step']} attempt {attempt}"
    body = {key: value for key, value in data.items() if key not in ("run", "seq", "at")}
    try:
        words = describe(read_body(body))
    except (ValidationError, ValueError, TypeError, RecursionError):
        words = _plain(data)
    if data["type"] == "usage_recorded":
        words += f"; so far {_spent(totals)}"
    return words


def _plain(data: Data) -> str:
    try:
        rest = {key: value for key, value in data.items() if key not in _ENVELOPE}
        return shown_line(canonical_json(rest), LONGEST_WORDS)
    except (ValueError, RecursionError):
        return "?"


def _moment(data: Data) -> datetime | None:
    try:
        at = datetime.fromisoformat(data["at"])
        return at if at.tzinfo else at.replace(tzinfo=UTC)
    except ValueError:
        return None


def _span(seconds: float, *, brief: bool = False) -> str:
    """A time span in at most seven characters."""
    if seconds < 100:
        return f"{seconds:.1f}s" if brief else f"{seconds:.3f}"
    minutes, hours, days = (int(seconds // each) for each in (60, 3600, 86400))
    if not hours:
        return f"{minutes}m{int(seconds) % 60:02}s"
    return f"{hours}h{minutes % 60:02}m" if not days else f"{days}d{hours % 24:02}h"
