"""Cases: messages typed and dictated in a roofing office in Melbourne, with the reading a sensible colleague would give.

Three sets of the same kinds in different words: classifiers are tuned on `tuning` and `practice`, and
measured on `held_out`. See the README in `utterances` before adding to any.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from importlib.resources import files
from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, Field

from podium.core.model import FrozenModel, Json, NonEmpty
from podium.core.packs import TierName
from podium.jobs.operator.models import Intent, Message

NOW = datetime(2026, 11, 16, 9, tzinfo=timezone(timedelta(hours=11)))
"""Time of every message: a Monday morning in Melbourne. `tomorrow` is the 17th of November 2026."""

Half = Literal["tuning", "practice", "held_out"]
HALVES: tuple[Half, ...] = get_args(Half)


def _several(value: Json) -> Json:
    return (value,) if isinstance(value, str) else value


class UtteranceCase(FrozenModel):
    """One message and what is right to make of it. None and empty are not scored."""

    half: Half
    say: NonEmpty
    kind: NonEmpty = Field(alias="class")
    context: dict[str, Json] = Field(default_factory=dict)
    intents: Annotated[tuple[Intent, ...], BeforeValidator(_several)] = Field(alias="intent")
    """Accepted intents. Where nothing may be done, a question is often as right as a refusal."""
    domain: str | None = None
    tools: tuple[str, ...] = ()
    """In the order in which they were said; a skill is written as its tools."""
    fields: dict[str, dict[str, Json]] = Field(default_factory=dict)
    """Tool → argument → value that must have been read. `TOOL#2` is the second call of a tool."""
    missing: tuple[str, ...] = ()
    """Fields that must be asked for."""
    tier: TierName | None = None

    @property
    def message(self) -> Message:
        return Message(text=self.say, context=self.context, now=NOW)

    @property
    def may_execute(self) -> bool:
        return Intent.EXECUTE in self.intents


def utterance_cases(kind: str | None = None, half: Half | None = None) -> list[UtteranceCase]:
    """All cases, or those of one class, of one half; in the order of their files."""
    return [
        case
        for name in HALVES
        if half in (None, name)
        for case in _cases_of(name)
        if kind in (None, case.kind)
    ]


def _cases_of(half: Half) -> Iterator[UtteranceCase]:
    text = (files(__package__) / "utterances" / f"{half}.jsonl").read_text(encoding="utf-8")
    for line in text.splitlines():
        yield UtteranceCase.model_validate({"half": half, **json.loads(line)})
