"""Message and context as typed: text or stdin, NAME=VALUE, files of JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from podium.core.errors import BadInput
from podium.core.model import Json


def context_value(text: str) -> Json:
    """Parse an object, list, true, false or null as JSON; else return the text itself. Raises `BadInput`."""
    # Ids such as 0400123456 and 12e5 stay what they are: only what is surely no word is taken for JSON.
    if text[:1] not in ("{", "[") and text not in ("true", "false", "null"):
        return text
    try:
        return json.loads(text, object_pairs_hook=unique_keys)
    except (ValueError, RecursionError) as error:
        raise BadInput(
            f"context value {text[:60]!r} is not JSON ({error}); "
            "fix it, or put it in a file and pass that with --context-file"
        ) from None


def unique_keys(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """Build the object; raises `ValueError` for a duplicate key."""
    result: dict[str, Json] = {}
    for name, value in pairs:
        if name in result:
            raise ValueError(f"duplicate key {name[:60]!r}")
        result[name] = value
    return result


MAX_BYTES = 4_000_000
STDIN = "-"


@dataclass(frozen=True)
class Typed:
    """Options typed beside the message."""

    mode: str
    pairs: tuple[str, ...] = ()
    file: Path | None = None
    packs: tuple[str, ...] = ()
    classifier: str = ""
    mode_explicit: bool = True
    """False: no mode was given, and the default applies."""
    session: str = ""
    """Name of the conversation that the message is a part of. Empty: none."""

    @property
    def options(self) -> list[str]:
        """Options to repeat with the same message, without the mode."""
        argv = [part for pair in self.pairs for part in ("--context", pair)]
        argv += ["--context-file", str(self.file)] if self.file else []
        argv += [part for pack in self.packs for part in ("--pack", pack)]
        argv += ["--session", self.session] if self.session else []
        return argv + (["--classifier", self.classifier] if self.classifier else [])


def message_of(argument: str, message: str) -> str:
    """Read the message, given as MESSAGE or with -m; `-` stands for all of stdin."""
    if argument and message:
        raise BadInput("the message is given twice; pass it as MESSAGE or with -m")
    text = argument or message
    if text != STDIN:
        return text
    if sys.stdin.isatty():
        sys.stderr.write("podium: type the message, then Ctrl-D\n")
        sys.stderr.flush()
    # Far more than is read of a message; what is longer is refused by its length. Some editors
    # begin a file with a mark that is no part of its text.
    return sys.stdin.buffer.read(MAX_BYTES).decode("utf-8-sig", errors="surrogateescape")


def context_of(pairs: Sequence[str], file: Path | None) -> dict[str, Json]:
    """Merge the file's object with the pairs, which win. Raises `BadInput` for invalid input."""
    context, values = _read(file) if file else {}, dict[str, Json]()
    for pair in pairs:
        name, value = parted(pair)
        if name in values:
            raise BadInput(f"context {name[:60]!r} is given twice; pass it once")
        values[name] = value
    return {**context, **values}


def parted(pair: str) -> tuple[str, Json]:
    """NAME=VALUE. The value is JSON where it reads as an object, list, number, true or null; else text."""
    name, separator, value = pair.partition("=")
    if not separator or not name.strip():
        raise BadInput(f"context {pair[:60]!r} is not NAME=VALUE; for example: quote_id=abc123")
    return name.strip(), context_value(value)


def _read(file: Path) -> dict[str, Json]:
    try:
        with file.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise BadInput(
            f"cannot read the context file {str(file)!r} ({error.strerror}); check its path"
        ) from None
    if len(content) > MAX_BYTES:
        raise BadInput(
            f"the context file {str(file)!r} is larger than {MAX_BYTES} bytes; "
            "pass large files by path instead of embedding them"
        )
    try:
        context = json.loads(content, object_pairs_hook=unique_keys)
    except (ValueError, RecursionError) as error:
        raise BadInput(
            f"the context file {str(file)!r} is not JSON ({error}); fix the file"
        ) from None
    if not isinstance(context, dict):
        kind = "a list" if isinstance(context, list) else "a single value"
        raise BadInput(
            f"the context file {str(file)!r} must contain a JSON object, not {kind}; write names and values in {{}}"
        )
    return context
