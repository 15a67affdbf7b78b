"""A cassette of recorded answers, without anybody's key, and the digest by which a request finds its answer.

From the body are dropped: keys that hold ids and who is asking (`VOLATILE_KEYS`), and in texts the
context blocks that CLIs put beside a prompt. Replaced by a placeholder are ids, dates, times of day,
absolute paths, decimals and numbers of four digits or more.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podium.core.errors import BadInput, ConfigInvalid, ConfigProblem
from podium.platform.file_lock import file_lock
from podium.platform.safe_open import open_or_create
from podium.testing.modelserver.http_server import Request
from podium.testing.modelserver.request_log import public_target

VERSION = 1
REMOVED = b"[removed]"


@dataclass(frozen=True)
class Recorded:
    """One answer: what was asked, and each piece of what came back with its second since the request."""

    digest: str
    method: str
    path: str
    model: str
    status: int
    headers: Mapping[str, str]
    chunks: Sequence[tuple[float, bytes]]

    def line(self) -> bytes:
        """Return the line in the file."""
        record = {
            "cassette": VERSION,
            "digest": self.digest,
            "method": self.method,
            "path": self.path,
            "model": self.model,
            "status": self.status,
            "headers": dict(self.headers),
            "chunks": [{"at": round(at, 4), **_encoded(data)} for at, data in self.chunks],
        }
        return json.dumps(record, ensure_ascii=False).encode() + b"\n"


def without_secrets(
    chunks: Sequence[tuple[float, bytes]], secrets: Iterable[str]
) -> list[tuple[float, bytes]]:
    """Cut every secret out of the pieces, also one that spans two pieces."""
    pieces = list(chunks)
    for secret in {value.encode() for value in secrets}:
        pieces = [(at, data.replace(secret, REMOVED)) for at, data in pieces]
        whole = b"".join(data for _, data in pieces)
        if secret in whole:
            pieces = [(pieces[0][0], whole.replace(secret, REMOVED))]
    return pieces


class CassetteWriter:
    """Adds answers to a file. Each line is there whole or not at all."""

    def __init__(self, path: Path) -> None:
        """Makes the file if there is none. Raises `BadInput` where it cannot be written."""
        self._path = path
        try:
            os.close(open_or_create(path, follow=True))
        except OSError as error:
            raise BadInput(f"{str(path)!r} cannot be written: {error.strerror}") from None

    def add(self, recorded: Recorded) -> None:
        """Raises `OSError` when the line cannot be written; the file is then as before."""
        line = recorded.line()
        # It may be a link: its name is chosen by a person.
        with file_lock(self._path, follow=True) as descriptor:
            end = _end_of_lines(descriptor)
            os.ftruncate(descriptor, end)  # what a crash left half written is of no use
            try:
                _write_at(descriptor, end, line)
            except OSError:
                os.ftruncate(descriptor, end)
                raise


class CassetteReader:
    """Finds answers by the digest of the request; equal requests get theirs in the recorded order."""

    def __init__(self, path: Path) -> None:
        """Raises `ConfigInvalid` with the line that cannot be used."""
        self._path = path
        self._entries: dict[str, list[tuple[int, int]]] = {}
        self._served: Counter[str] = Counter()
        try:
            self._index()
        except OSError as error:
            raise _invalid(path, f"cannot be read: {error.strerror}") from None

    def __len__(self) -> int:
        return sum(map(len, self._entries.values()))

    def next(self, digest: str) -> Recorded | None:
        """The next answer for this request; the last one again when all were given."""
        entries = self._entries.get(digest)
        if not entries:
            return None
        number = min(self._served[digest], len(entries) - 1)
        self._served[digest] += 1
        offset, size = entries[number]
        with self._path.open("rb") as file:
            file.seek(offset)
            return _recorded(json.loads(file.read(size)))

    def _index(self) -> None:
        offset = 0
        with self._path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if line.endswith(b"\n") and line.strip():
                    digest = self._checked(line, number)
                    self._entries.setdefault(digest, []).append((offset, len(line)))
                offset += len(line)

    def _checked(self, line: bytes, number: int) -> str:
        try:
            return _recorded(json.loads(line)).digest
        except (ValueError, KeyError, TypeError, RecursionError):
            raise _invalid(
                self._path, "is not a line of a cassette; record it again", number
            ) from None


def _recorded(data: Mapping[str, Any]) -> Recorded:
    if data["cassette"] != VERSION:
        raise ValueError("a different version")
    return Recorded(
        digest=str(data["digest"]),
        method=str(data["method"]),
        path=str(data["path"]),
        model=str(data["model"]),
        status=int(data["status"]),
        headers={str(name): str(value) for name, value in dict(data["headers"]).items()},
        chunks=[(float(chunk["at"]), _bytes_of(chunk)) for chunk in data["chunks"]],
    )


def _encoded(data: bytes) -> dict[str, str]:
    """Encode a piece as text if it is valid UTF-8; it may end within a character."""
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _bytes_of(chunk: Mapping[str, Any]) -> bytes:
    if "text" in chunk:
        return str(chunk["text"]).encode()
    return base64.b64decode(chunk["base64"], validate=True)


def _end_of_lines(descriptor: int) -> int:
    """Find the end of the last complete line."""
    end = os.fstat(descriptor).st_size
    for start in _blocks_backwards(end):
        newline = os.pread(descriptor, min(_BLOCK, end - start), start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
    return 0


def _blocks_backwards(end: int) -> Iterator[int]:
    while end > 0:
        end = max(0, end - _BLOCK)
        yield end


def _write_at(descriptor: int, offset: int, data: bytes) -> None:
    while data:
        written = os.pwrite(descriptor, data, offset)
        offset, data = offset + written, data[written:]


def _invalid(path: Path, problem: str, line: int | None = None) -> ConfigInvalid:
    return ConfigInvalid(str(path), [ConfigProblem(problem, line=line)])


_BLOCK = 64 * 1024


VOLATILE_KEYS = frozenset(
    {
        "id",
        "call_id",
        "tool_call_id",
        "tool_use_id",
        "item_id",
        "session_id",
        "previous_response_id",
        "prompt_cache_key",
        "safety_identifier",
        "user",
        "metadata",
        "client_metadata",
        "encrypted_content",
        "signature",
        "thoughtSignature",
        "session_context",
    }
)

CONTEXT_TAGS = ("session_context", "environment_context", "system-reminder", "user_instructions")

_DAY = r"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_PLACEHOLDERS = [
    (re.compile(expression), placeholder)
    for expression, placeholder in (
        (r"x-anthropic-billing-header:[^\n\"]*", "<id>"),  # claude: changes with the session
        (r"\bChunk ID: [0-9a-f]+", "<id>"),  # codex: on top of a command's output
        (r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b", "<id>"),
        (r"\b(?:call|toolu|msg|resp|fc|ctc|rs|req|ses|prt)_[A-Za-z0-9]{8,}", "<id>"),
        (
            r"\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?",
            "<date>",
        ),
        (rf"(?:\b{_DAY},? )?\b{_MONTH}\.? \d{{1,2}},? \d{{4}}\b", "<date>"),
        (r"\b\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?: ?[AP]M)?\b", "<date>"),
        (r"(?<![\w/.:<])/(?:[\w.@+-]+/)*[\w.@+-]+/?", "<path>"),
        (r"\b(?=[a-f]{0,40}\d)[0-9a-f]{7,64}\b", "<id>"),
        (r"\b\d+\.\d+\b|\b\d{4,}\b", "<number>"),
    )
]


def digest_of(request: Request) -> str:
    """`sha256:…` of the request as these rules see it."""
    identity = [request.method, public_target(request.target), _normal_body(request.body)]
    content = json.dumps(identity, sort_keys=True, ensure_ascii=True)
    return "sha256:" + hashlib.sha256(content.encode()).hexdigest()


def _normal_body(body: bytes) -> Any:
    try:
        return _normal(json.loads(body)) if body else None
    except (ValueError, RecursionError):
        return body.decode("latin-1")


def _normal(value: Any) -> Any:
    if isinstance(value, str):
        return normal_text(value)
    if isinstance(value, list):
        return [_normal(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _normal(item) for key, item in value.items() if key not in VOLATILE_KEYS}
    return value


def normal_text(text: str) -> str:
    """The text without a CLI's context, and with placeholders for what differs from run to run."""
    for tag in CONTEXT_TAGS:
        text = _without_blocks(text, f"<{tag}>", f"</{tag}>")
    for expression, placeholder in _PLACEHOLDERS:
        text = expression.sub(placeholder, text)
    return text


def _without_blocks(text: str, start: str, end: str) -> str:
    """Looks for each end once: a text of a million starts costs no more than any other."""
    parts, at = [], 0
    while (begin := text.find(start, at)) >= 0 and (close := text.find(end, begin)) >= 0:
        parts.append(text[at:begin])
        at = close + len(end)
    return "".join([*parts, text[at:]])
