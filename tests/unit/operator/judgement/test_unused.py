"""Nothing of a message is dropped in silence: it is used, listed, or asked about."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from podium.core.packs import Pack
from podium.jobs.operator.judgement.embedded import EmbeddedClassifier
from podium.jobs.operator.judgement.fields import FieldExtractor
from podium.jobs.operator.models import Intent, Message, Reading
from podium.tools.packs import load_pack, shipped_packs

NOW = datetime(2026, 11, 18, 9, tzinfo=UTC)


@pytest.fixture(scope="module")
def roofing() -> Pack:
    return load_pack(shipped_packs() / "roofing")


def _read(pack: Pack, text: str) -> Reading:
    return EmbeddedClassifier(pack, FieldExtractor(pack)).reading(Message(text=text, now=NOW))


@pytest.mark.parametrize(
    ("text", "listed"),
    [
        ("reopen inspection INS-31, the box gutter is missing", ("box gutter is missing",)),
        ("start job JB-51, woohoo", ("woohoo",)),
        ("please start job JB-51, thanks a lot", ()),
        ("archive lead kx42 because they sold the house", ()),
    ],
)
def test_what_changes_nothing_is_listed(roofing: Pack, text: str, listed: tuple[str, ...]) -> None:
    reading = _read(roofing, text)
    assert (reading.intent, reading.not_used) == (Intent.EXECUTE, listed)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("start job JB-51 later", "later"),
        ("start job JB-51, invite Bob Carter", "invite Bob Carter"),
        ("start job JB-51, print 30 flyers", "print 30 flyers"),
        ("book an inspection for lead kx42 yesterday at 3pm", "2026-11-17"),
    ],
)
def test_what_may_change_the_sense_is_asked_about(roofing: Pack, text: str, part: str) -> None:
    reading = _read(roofing, text)
    assert reading.intent is Intent.CLARIFY
    assert part in reading.question
    assert not reading.calls
