"""Outcome of a turn: errors read from a program's or provider's end, usage, prices, and the reply of the tool `finish`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from podium.core.decisions import Usage
from podium.core.errors import (
    AgentLost,
    AgentNotLoggedIn,
    AgentRejected,
    AgentUnavailable,
    ContextOverflow,
    PodiumError,
    RateLimited,
    TimedOut,
)
from podium.core.processes import ProcessExit
from podium.core.turns import Finish, Reply, Turn, TurnLimits

MAX_LINE_CHARACTERS = 500

_OVERFLOW = re.compile(
    r"context[ _](window|length)|prompt is too long|maximum context|too many (input )?tokens|"
    r"input token count .{0,40}exceed|exceeds the (model|maximum).{0,40}token",
    re.IGNORECASE,
)
_MAX_WAIT = timedelta(days=31)


def plain_line(text: str, longest: int = MAX_LINE_CHARACTERS) -> str:
    """Words of a program on one line, without escapes and control characters, cut."""
    without = re.sub(r"\x1b\[[0-9;?]*[ -/]*[@-~]", "", text[: longest * 20])
    line = " ".join(without.split())
    plain = "".join(character for character in line if character.isprintable())
    return plain if len(plain) <= longest else plain[: longest - 1] + "…"


def stderr_end(ended: ProcessExit) -> str:
    """The end of what it wrote to stderr, to be put behind a message; empty when there is nothing."""
    tail = ended.stderr[-4_000:].decode(errors="replace").strip()
    line = plain_line(tail.rpartition("\n")[2])
    return f": {line}" if line else ""


def out_of_time(agent: str, ended: ProcessExit) -> TimedOut:
    return TimedOut(f"agent {agent!r} gave no answer within {ended.seconds:.1f} s")


def lost(agent: str, ended: ProcessExit) -> AgentLost:
    """It ended, and no record of a result says that it did its work."""
    how = f"signal {ended.signal}" if ended.exit_code is None else f"exit {ended.exit_code}"
    if ended.breaches:
        return AgentLost(f"agent {agent!r} ended without an answer: {'; '.join(ended.breaches)}")
    return AgentLost(f"agent {agent!r} ended without an answer ({how}){stderr_end(ended)}")


def error_of_status(
    agent: str,
    status: int | None,
    message: str,
    *,
    login_hint: str,
    now: datetime,
    retry_at: datetime | None = None,
    address: str = "",
) -> PodiumError:
    """The error of the tree for what a provider answered. `status` None: it was not reached.

    `address` is where it was tried, if that is known.
    """
    detail = plain_line(message)
    detail = f": {detail}" if detail else ""
    if is_overflow(message):
        return ContextOverflow(f"the conversation is too long for agent {agent!r}{detail}")
    if status in (401, 403):
        return AgentNotLoggedIn(f"agent {agent!r} is not logged in{detail}; {login_hint}")
    if status == 429:
        reset = retry_at or reset_time(message, now)
        return RateLimited(f"agent {agent!r} is rate-limited{_until(reset)}{detail}", reset)
    if status is None or status >= 500 or status in (408, 409):
        where = f" at {address}" if address else ""
        return AgentUnavailable(f"agent {agent!r} cannot reach its model{where}{detail}")
    return AgentRejected(f"the provider rejected the request of agent {agent!r} ({status}){detail}")


def is_overflow(text: str) -> bool:
    return _OVERFLOW.search(text[:20_000]) is not None


def _until(retry_at: datetime | None) -> str:
    return "" if retry_at is None else f" until {retry_at:%Y-%m-%d %H:%M:%S} UTC"


_RESET_EPOCH = re.compile(r"\|(\d{10})\b")
_RESET_ISO = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d))")
_RESET_SPAN = re.compile(
    r"(?:reset|retry|try again|wait|available)[^.;\d]{0,40}"
    r"((?:\d+(?:\.\d+)?\s*(?:ms|days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)(?![a-z])"
    r"[ ,]*(?:and )?)+)",
    re.IGNORECASE,
)
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|[dhms])", re.IGNORECASE)
_UNIT_SECONDS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def reset_time(text: str, now: datetime) -> datetime | None:
    """Read the end of a limit, as providers put it in words: a time, or how long from now on."""
    try:
        reset = _reset_in(text[:20_000], now)
    except (ValueError, OverflowError, OSError):
        return None  # a date there is none of
    return reset if reset is not None and now <= reset <= now + _MAX_WAIT else None


def _reset_in(text: str, now: datetime) -> datetime | None:
    if (epoch := _RESET_EPOCH.search(text)) is not None:
        return datetime.fromtimestamp(int(epoch[1]), UTC)
    if (timestamp := _RESET_ISO.search(text)) is not None:
        return datetime.fromisoformat(timestamp[1]).astimezone(UTC)
    if (span := _RESET_SPAN.search(text)) is not None:
        seconds = sum(
            float(number) * _UNIT_SECONDS[unit.lower()] for number, unit in _PART.findall(span[1])
        )
        return after_seconds(seconds, now)
    return None


def after_seconds(seconds: float, now: datetime) -> datetime | None:
    """So many seconds from now; None for what no provider means."""
    if not 0 <= seconds <= _MAX_WAIT.total_seconds():
        return None
    return now + timedelta(seconds=seconds)


def may_end_with(text: str, waiting_approvals: tuple[str, ...]) -> bool:
    """Return whether a turn may end with this text: an empty one only when it was told to end and wait."""
    return bool(text.strip() or waiting_approvals)


def missing_tools(agent: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Warnings for tools of its own that a role grants and the agent does not have."""
    return tuple(
        f"agent {agent!r} has no tool {name!r} of its own; it is not available" for name in names
    )


_UNFORESEEN = (OSError, LookupError, AttributeError, TypeError, ValueError)
"""Errors of a full disk, and of records whose shape nobody has foreseen."""


@contextmanager
def accounted(agent: str, used: Callable[[], Usage]) -> Iterator[None]:
    """Put on whatever ends the turn in here what was used until then, cancellations included.

    Raises `AgentLost` for what is no error of the tree but comes of files or of what the agent said.
    """
    try:
        yield
    except _UNFORESEEN as error:
        description = plain_line(f"{type(error).__name__}: {error}")
        lost = AgentLost(f"agent {agent!r} failed unexpectedly ({description})")
        lost.usage = used()
        raise lost from error
    except BaseException as error:
        vars(error).setdefault("usage", used())
        raise


def unkept_limits(agent: str, limits: TurnLimits, *measures: str) -> tuple[str, ...]:
    """Warnings for those limits of the turn that are set and that the agent cannot be held to."""
    return tuple(
        f"the turn's limit of {getattr(limits, measure):g} {measure} cannot be enforced for agent {agent!r}"
        for measure in measures
        if getattr(limits, measure) is not None
    )


def finished(reply: Reply, turn: Turn, done: Finish | None) -> Reply:
    """The reply, with what the agent said by `finish`. None: it did not use it.

    Where a payload is wanted and the tool was given none, the agent's own words may hold it.
    """
    if done is None:
        return reply
    if turn.contract is None:
        return reply.model_copy(update={"text": done.summary})
    if not done.payload:
        return reply if reply.text.strip() else reply.model_copy(update={"text": done.summary})
    update = {"text": done.summary, "payload": done.payload, "found": "native"}
    return reply.model_copy(update=update)


def cost_of(
    model: str, *, input_tokens: int, output_tokens: int, cached_tokens: int = 0
) -> float | None:
    """US dollars for one exchange. None when nobody knows the model's price.

    `input_tokens` include those that came from a cache.
    """
    # Late: the price list takes a while to load, and most commands ask no agent.
    from genai_prices import Usage, calc_price

    usage = Usage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cache_read_tokens=min(cached_tokens, input_tokens),
    )
    try:
        return float(calc_price(usage, model_ref=model).total_price)
    except (LookupError, ValueError):
        return None
