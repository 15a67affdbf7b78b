"""What any program wrote, read as its settings say: plain words, JSON, or JSON line by line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from podium.agents.headless.command.settings import CommandSettings
from podium.agents.headless.ending import plain_words
from podium.domain.model import Json

LONGEST_SESSION = 500


class Unreadable(Exception):
    """The output is not what the settings say it is. The message says what is missing."""


@dataclass(frozen=True)
class Output:
    """What was found."""

    text: str
    session: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    usd: float | None = None


def read_output(
    lines: Sequence[bytes], settings: CommandSettings, *, may_be_silent: bool = False
) -> Output:
    """Raises `Unreadable`, also for JSON without a text unless the program may say nothing."""
    whole = b"\n".join(lines)
    if settings.output == "text":
        return Output(whole.decode(errors="replace").strip())
    is_document = settings.output == "json" and not (may_be_silent and not whole.strip())
    records = [_parsed(whole)] if is_document else list(_records(lines))
    texts = [text for record in records if isinstance(text := at(record, settings.text), str)]
    if not texts and not may_be_silent:
        raise Unreadable(f"nothing it wrote has a text at {settings.text!r}")
    return Output(
        text="".join(texts if settings.join_text else texts[-1:]),
        session=_session(_last(records, settings.session)),
        input_tokens=_count(_last(records, settings.input_tokens)),
        output_tokens=_count(_last(records, settings.output_tokens)),
        usd=_amount(_last(records, settings.usd)),
    )


def at(data: Json, path: str) -> Json:
    """The value at a dotted path; numbers are places in lists. None when there is none."""
    for name in path.split("."):
        if isinstance(data, dict):
            data = data.get(name)
        elif isinstance(data, list) and name.lstrip("-").isdecimal():
            place = int(name[:10])
            data = data[place] if -len(data) <= place < len(data) else None
        else:
            return None
    return data


def record_in(line: bytes) -> Json:
    """The JSON of a line; None when it holds none. Programs print other things too."""
    try:
        return json.loads(line.decode(errors="replace"))
    except (ValueError, RecursionError):
        return None


def _records(lines: Sequence[bytes]) -> Iterator[Json]:
    return (record for line in lines if isinstance(record := record_in(line), dict | list))


def _parsed(whole: bytes) -> Json:
    found = record_in(whole)
    if not isinstance(found, dict | list):
        begin = plain_words(whole[:500].decode(errors="replace"), 100)
        raise Unreadable(f"what it wrote is no JSON: {begin!r}")
    return found


def _last(records: Sequence[Json], path: str) -> Json:
    if not path:
        return None
    found = (at(record, path) for record in reversed(records))
    return next((value for value in found if value is not None), None)


def _session(found: Json) -> str | None:
    """A conversation's name, if it can be a word of a command line and no switch of it."""
    if not isinstance(found, str) or not 0 < len(found) <= LONGEST_SESSION:
        return None
    return found if found.isprintable() and not found.startswith("-") else None


def _count(found: Json) -> int | None:
    amount = _amount(found)
    return None if amount is None else int(amount)


def _amount(found: Json) -> float | None:
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    return float(found) if 0 <= found < 1e15 else None
