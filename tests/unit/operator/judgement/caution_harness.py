"""Readings as a classifier may give them, looked at again."""

from __future__ import annotations

from functools import cache

from podium.core.model import Json
from podium.core.packs import Pack
from podium.jobs.operator.bench.cases import NOW
from podium.jobs.operator.judgement.caution import look_again
from podium.jobs.operator.judgement.fields import FieldExtractor
from podium.jobs.operator.models import Intent, Message, Reading, ToolIntent
from podium.tools.packs import load_pack, shipped_packs


@cache
def roofing() -> Pack:
    return load_pack(shipped_packs() / "roofing")


@cache
def _roofing_fields() -> FieldExtractor:
    return FieldExtractor(roofing())


def tool_intent(tool: str, **arguments: Json) -> ToolIntent:
    return ToolIntent(tool=tool, arguments=arguments)


def again(text: str, *intent: ToolIntent, pack: Pack | None = None) -> Reading:
    """Return the reading after a second look at a message that was read as these tool intents."""
    pack = pack or roofing()
    fields = _roofing_fields() if pack is roofing() else FieldExtractor(pack)
    reading = Reading(intent=Intent.EXECUTE, calls=intent, confidence=0.9)
    return look_again(reading, Message(text=text, now=NOW), pack, fields.entities(text, NOW))


def question(text: str, *intent: ToolIntent, pack: Pack | None = None) -> str:
    """Return the question that is asked; empty when nothing is in doubt."""
    reading = again(text, *intent, pack=pack)
    assert (reading.intent is Intent.CLARIFY) == bool(reading.question)
    return reading.question
