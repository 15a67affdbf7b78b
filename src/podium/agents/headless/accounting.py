"""What a turn used is never lost, and how it ends is always an error of the tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from podium.agents.headless.ending import plain_words
from podium.domain.asking import TurnLimits
from podium.domain.errors import AgentLost
from podium.domain.gating import Usage

_UNFORESEEN = (OSError, LookupError, AttributeError, TypeError, ValueError)
"""What comes of a disk that is full, and of records whose shape nobody has thought of."""


@contextmanager
def accounted(agent: str, used: Callable[[], Usage]) -> Iterator[None]:
    """Whatever ends the turn in here carries what was used until then, cancellations too.

    Raises `AgentLost` for what is no error of the tree but comes of files or of what the agent said.
    """
    try:
        yield
    except _UNFORESEEN as error:
        words = plain_words(f"{type(error).__name__}: {error}")
        lost = AgentLost(f"agent {agent!r} was lost by what nobody foresaw ({words})")
        lost.usage = used()
        raise lost from error
    except BaseException as error:
        vars(error).setdefault("usage", used())
        raise


def unkept_limits(agent: str, limits: TurnLimits, *measures: str) -> tuple[str, ...]:
    """Warnings for those limits of the turn that are set and that the agent cannot be held to."""
    return tuple(
        f"agent {agent!r} cannot be held to the turn's limit of {getattr(limits, measure):g} {measure}"
        for measure in measures
        if getattr(limits, measure) is not None
    )
