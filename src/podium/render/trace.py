"""Text of a trace's rows, fitted to the width of the terminal."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from textwrap import wrap

from pydantic_core import to_json

from podium.core.decisions import canonical_json
from podium.core.model import Json
from podium.render.event import MAX_ARGUMENTS, about, describe, shorten, tokens_text
from podium.render.text import counted, escaped_line, local_time, safe_line
from podium.render.trace_rows import Data, Row, Totals, body_of, figures, number

MAX_NAME = 60
_STEPS = {"step_started", "step_completed"}


def quick_text(row: Row) -> str | None:
    """The same as the slower words would be; None where only those can tell."""
    text = _call(row) if row.outcome else _step_line(row.data)
    if text and text.isascii() and text.isprintable() and "  " not in text:
        return text
    return None


def _step_line(data: Data) -> str | None:
    step = data.get("step")
    plain = data["type"] in _STEPS and type(step) is str and len(step) <= MAX_NAME
    return step if plain and data.get("attempt", 1) == 1 else None


def _call(row: Row) -> str | None:
    data, request = row.data, row.request or row.data
    if request.get("approval_id") or data["type"] == "tool_refused" or data.get("error"):
        return None
    try:
        names = data["tool"], request["tier"], request["rule"], data["call"].split(":")
        tool, tier, rule, (_, step, _) = names
        arguments_json = to_json(request["arguments"]) if request["arguments"] else b""
        plain = (
            tool
            and step
            and len(tool) <= MAX_NAME
            and len(tier) + len(rule) + len(step) <= MAX_NAME
            and len(arguments_json) <= MAX_ARGUMENTS
            and (not arguments_json or arguments_json[0] == 123)
        )
        if not plain:
            return None
        line = f"{tool} {arguments_json.decode()} in" if arguments_json else f"{tool} in"
        return f"{line} {step} [{tier} {rule}]{_proof(data)}"
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return None


def _proof(data: Data) -> str:
    receipt = data.get("receipt")
    if receipt is None:
        return ""
    if type(receipt) is not int or not 0 <= receipt < 1e15:
        raise ValueError("not the number of a receipt")
    return f" #{receipt}"


NARROW_COLUMNS = 100
"""On a terminal with fewer columns a call is shown without its step and rule."""

MAX_LINE_CHARACTERS = 2000
"""More of one event is not shown, also when piped: `--json` has it whole."""

_MIN_WIDTH = 24
_REASON_LINES = 6
_TO_ACT_ON = {"run_failed", "run_needed_human", "run_waiting", "approval_requested", "step_broke"}
_ENVELOPE = {"run", "seq", "at", "type", "version"}


class TraceTimeline:
    """Makes a line of each row. It knows when the first event was, and which day it is."""

    def __init__(self, columns: int = 0) -> None:
        """`columns` is the width of a terminal; 0 leaves lines whole."""
        self._columns = columns
        self._first: datetime | None = None
        self._day = ""
        self._second = ""
        self._zone: tzinfo | None = None
        self._clock = ""

    def begins(self, data: Data) -> None:
        """Count from this event on, whether it is shown or not."""
        self._first = self._first or _timestamp(data)

    def header(self) -> str:
        clock = "AT".ljust(8 if self._columns else 19)
        return f"{clock} {'SINCE':>7} {'SEQ':>6} {'EVENT':<14} {'TOOK':>6} WHAT"

    def lines(self, row: Row, totals: Totals) -> str:
        """The row, on several lines where somebody has to read a reason."""
        data = row.data
        day, clock, since = self._when(data)
        what, took = (row.outcome or _type(data)).ljust(14), _took(data).rjust(6)
        # Not as format specifications: these are read anew for every row.
        front = f"{clock} {since.rjust(7)} {str(data['seq']).rjust(6)} {what} {took} "
        if not self._columns:
            text = quick_text(row)
            return front + (_on_one_line(row, totals) if text is None else text)
        width = self._columns - len(front)
        if width < _MIN_WIDTH:
            front, width = f"{front.rstrip()}\n  ", max(self._columns, _MIN_WIDTH) - 2
        first_line, below = self._folded(row, totals, width)
        return f"{day}{front}{first_line}".rstrip() + below

    def _folded(self, row: Row, totals: Totals, width: int) -> tuple[str, str]:
        """Cut a row to the width, and give the reasons whose end nobody must miss on lines below it."""
        if row.outcome:
            first_line = _call_text(row, width, self._columns)
            reason = _reason(row.data, brief=self._columns < NARROW_COLUMNS)
        else:
            first_line, reason = _event_text(row.data, totals), ""
            if row.data["type"] in _TO_ACT_ON and len(first_line) > width:
                first_line, reason = "", first_line
        indent = " " * (25 if self._columns > 2 * _MIN_WIDTH + 20 else 2)
        wrapped = wrap(
            safe_line(reason, MAX_LINE_CHARACTERS),
            max(20, self._columns - len(indent)),
            max_lines=_REASON_LINES,
            placeholder=" …",
        )
        return _safe(first_line, width), "".join(f"\n{indent}{part}" for part in wrapped)

    def _when(self, data: Data) -> tuple[str, str, str]:
        """A line when another day has begun, the time of day, and how long since the first event."""
        at = _timestamp(data)
        if at is None:
            return "", "?".ljust(8 if self._columns else 19), ""
        since = _since((at - self._first).total_seconds()) if self._first else ""
        second = data["at"][:19]
        if second != self._second or at.tzinfo is not self._zone:
            # The person's own time costs more than all else of a line: to ask once a second will do.
            self._second, self._zone, self._clock = second, at.tzinfo, local_time(at)
        clock = self._clock
        if not self._columns:
            return "", clock, since
        new, self._day = self._day != clock[:10], clock[:10]
        return (f"-- {self._day}\n" if new else ""), clock[11:], since


def _timestamp(data: Data) -> datetime | None:
    """The time of an event; None when that is no time which a clock here could show."""
    try:
        at = datetime.fromisoformat(data["at"])
        if not 1 < at.year < 9999:  # at the ends of time there is no going to another zone
            return None
        return at if at.tzinfo else at.replace(tzinfo=UTC)
    except ValueError:
        return None


def totals_line(totals: Totals) -> str:
    """Describe the totals."""
    ended = totals.completed + totals.failed + totals.refused
    counts = (
        (totals.completed, "completed"),
        (totals.failed, "failed"),
        (totals.refused, "refused"),
        (totals.calls - ended, "not settled"),
    )
    how = ", ".join(f"{count} {what}" for count, what in counts if count > 0)
    calls = counted(totals.calls, "call") + (f": {how}" if how else "")
    spent = f"{tokens_text(totals.input_tokens, totals.output_tokens)}, ${totals.usd:.4f}"
    answers = f", {counted(totals.model_answers, 'model answer')}" if totals.model_answers else ""
    return f"{counted(totals.events, 'event')}, {calls}{answers}; {spent}"


def _on_one_line(row: Row, totals: Totals) -> str:
    if not row.outcome:
        return _safe(_event_text(row.data, totals), MAX_LINE_CHARACTERS)
    text, reason = _call_text(row, MAX_LINE_CHARACTERS, 0), _reason(row.data, brief=False)
    return _safe(f"{text}: {reason}" if reason else text, MAX_LINE_CHARACTERS)


def _safe(text: str, longest: int) -> str:
    """`safe_line`, quicker for what most lines are, and for what is much longer than what is seen of it."""
    if len(text) <= longest and text.isascii() and text.isprintable() and "  " not in text:
        return text
    return safe_line(text[: longest + MAX_LINE_CHARACTERS], longest)


def _type(data: Data) -> str:
    return _safe(data["type"], 40)


def _took(data: Data) -> str:
    """In six characters, milliseconds told from seconds."""
    duration = data.get("seconds")
    if duration is None:
        return ""
    seconds = number(duration)
    if seconds < 1:
        return f"{seconds * 1000:.0f}ms"
    return f"{seconds:.1f}s" if seconds < 100 else _long_span(int(seconds))


def _call_text(row: Row, width: int, columns: int) -> str:
    """Tool, arguments, step, rule and receipt; where room is short the arguments give way."""
    request = row.request or row.data
    tool = _name(row.data.get("tool"))
    tail = _tail(row.data, request, brief=0 < columns < NARROW_COLUMNS)
    arguments_text = _arguments(request.get("arguments"), brief=columns > 0)
    left = width - len(tool) - len(tail) - 2
    if columns and len(arguments_text) > left:
        arguments_text = arguments_text[: left - 1] + "…" if left > 3 else ""
    return f"{tool} {arguments_text} {tail}" if arguments_text else f"{tool} {tail}"


def _arguments(arguments: Json, *, brief: bool) -> str:
    if not arguments or not isinstance(arguments, dict):
        return ""
    if brief and (short := about({name: _cut(value) for name, value in arguments.items()})):
        return short
    try:
        text = to_json(arguments).decode()
    except (ValueError, RecursionError):  # such as half a surrogate pair
        text = repr(arguments)
    return escaped_line(_cut(text), MAX_ARGUMENTS)


def _cut(value: Json) -> Json:
    """A text of which not all is seen need not be made safe to its end."""
    return value[: MAX_ARGUMENTS + 1] if isinstance(value, str) else value


def _tail(data: Data, request: Data, *, brief: bool) -> str:
    """Describe the step of a call, the gate's decision, and its receipt."""
    decision = _name(request.get("tier"))
    prefix = ""
    if not brief:
        decision = f"{decision} {_name(request.get('rule'))}"
        step = escaped_line(_step(data.get("call"))[:61], 60)
        prefix = f"in {step} " if step else ""
    if approval := request.get("approval_id"):
        decision += f" approval {escaped_line(shorten(str(approval)), 40)}"
    receipt = data.get("receipt")
    proof = f" #{number(receipt):.0f}" if receipt is not None else ""
    return f"{prefix}[{decision.strip() or 'unknown'}]{proof}"


def _name(value: Json) -> str:
    return _name_text(value[:61]) if isinstance(value, str) else ""


@lru_cache(maxsize=200)
def _name_text(name: str) -> str:
    """Of tools, tiers and rules there are few."""
    return escaped_line(name, 60)


def _step(call: Json) -> str:
    """The step of a call's key, which is `run:step:digest.number`."""
    return str(call).partition(":")[2].rpartition(":")[0]


def _reason(data: Data, *, brief: bool) -> str:
    """The reason why a call did not do what it was asked for; `brief` rows left its step and rule to this."""
    why = data.get("error") or (data.get("reason") if data["type"] == "tool_refused" else "")
    if not why:
        return ""
    prefix = f"{_step(data.get('call'))} {_name(data.get('rule'))}".strip() if brief else ""
    text = f"{prefix}: {why}" if prefix else str(why)
    return escaped_line(text[: MAX_LINE_CHARACTERS + 1], MAX_LINE_CHARACTERS)


def _event_text(data: Data, totals: Totals) -> str:
    """Describe an event that is no call. Kinds of a newer Podium are shown as they are."""
    if data["type"] in ("step_started", "step_completed") and isinstance(data.get("step"), str):
        attempt = data.get("attempt", 1)
        return data["step"] if attempt == 1 else f"{data['step']} attempt {attempt}"
    if data["type"] == "usage_recorded":
        so_far = f"${totals.usd:.4f}, {totals.input_tokens + totals.output_tokens:,} tokens"
        used = figures(data)
        share = f"{tokens_text(used.input_tokens, used.output_tokens)}, ${used.usd:.4f}"
        return f"so far {so_far}; {_name(data.get('source'))}: {share}"
    return _described(data)


def _described(data: Data) -> str:
    body = body_of(data)
    return _plain(data) if body is None else describe(body)


def _plain(data: Data) -> str:
    try:
        rest = {key: value for key, value in data.items() if key not in _ENVELOPE}
        return escaped_line(canonical_json(rest)[: MAX_LINE_CHARACTERS + 1], MAX_LINE_CHARACTERS)
    except (ValueError, RecursionError):
        return "?"


def _since(seconds: float) -> str:
    """In seven characters."""
    return f"+{seconds:.3f}" if seconds < 100 else "+" + _long_span(int(seconds))


@lru_cache(maxsize=50)
def _long_span(whole: int) -> str:
    """Many rows share a second."""
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}s"
    hours = whole // 3600
    return f"{hours}h{whole // 60 % 60:02}m" if hours < 24 else f"{hours // 24}d{hours % 24:02}h"
