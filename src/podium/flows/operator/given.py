"""What came in at the door, before anything is made of it."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator

from podium.domain.model import Json
from podium.domain.operating import OperatorMode
from podium.domain.seeing import hidden_in, written
from podium.flows.operator.judgement.judging import holds_reference

MOST_CHARACTERS = 20_000
MOST_CONTEXT_BYTES = 3_000_000
"""The plan is kept with the run, and a record holds 4 MB."""
_HARMLESS = ("Zl", "Zp", "Co", "Cn")
_WORDS_BEFORE, _LONGEST_BEFORE = 3, 60


def faults_of(message: Json, mode: Json, context: Json) -> list[str]:
    """Everything that keeps a message from being read, in words for whoever sent it."""
    return [*_message_faults(message), *_mode_faults(mode), *_context_faults(context)]


def _message_faults(message: Json) -> Iterator[str]:
    if not isinstance(message, str):
        yield f"the message must be text, not {type(message).__name__}"
        return
    if not message.strip():
        yield "the message is empty; say what is to be done"
    if len(message) > MOST_CHARACTERS:
        yield (
            f"the message has {len(message)} characters and {MOST_CHARACTERS} are read; "
            "put data into a file and hand it in with --context-file"
        )
        return
    hidden = next(((at, each) for at, each in hidden_in(message) if _is_refused(each)), None)
    if hidden is not None:
        yield _hidden_words(message, *hidden)


def _is_refused(character: str) -> bool:
    """Separators, and letters that Python does not know, are not seen either and do no harm."""
    return character != "\r" and unicodedata.category(character) not in _HARMLESS


def _hidden_words(message: str, at: int, character: str) -> str:
    # Cs: half of a surrogate pair, which no text has.
    control = unicodedata.category(character) in ("Cc", "Cs")
    kind = "control character" if control else "hidden character"
    name = unicodedata.name(character, "")
    called = f"{written(character)} ({name.lower()})" if name else written(character)
    before = " ".join(message[:at].split()[-_WORDS_BEFORE:])[-_LONGEST_BEFORE:]
    where = f"after {before!r}" if before else "at its beginning"
    return (
        f"the message holds the {kind} {called} {where}, so that it is not what it looks like; "
        "type it again as plain text"
    )


def _mode_faults(mode: Json) -> Iterator[str]:
    if mode not in list(OperatorMode):
        yield f"there is no mode {str(mode)[:40]!r}; modes: {', '.join(OperatorMode)}"


def _context_faults(context: Json) -> Iterator[str]:
    if context is None:
        return
    if not isinstance(context, dict):
        yield f"the context must be an object of names and values, not {type(context).__name__}"
        return
    try:
        # As it is: half of a surrogate pair can be written as \ud800 and stored nowhere.
        size = len(json.dumps(context, allow_nan=False, ensure_ascii=False).encode())
    except (TypeError, ValueError, RecursionError) as error:
        yield f"the context is not plain JSON: {error}"
        return
    if holds_reference(context):
        yield "a name in the context begins with `$`, which only plans write; take it out"
    if size > MOST_CONTEXT_BYTES:
        yield (
            f"the context takes {size} bytes and {MOST_CONTEXT_BYTES} are taken; "
            "name files by their paths instead of putting them in"
        )
