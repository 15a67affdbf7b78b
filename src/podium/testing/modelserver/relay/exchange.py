"""A folder of requests and their answers, written by a person or any program, with validation of each answer."""

from __future__ import annotations

import json
import os
import re
import stat
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from podium.core.errors import BadInput, NotPossibleNow
from podium.platform import make_private_folder
from podium.platform.file_lock import take_file_lock
from podium.testing.modelserver.messages import (
    Ask,
    OfferedTool,
    ServedAnswer,
    ServedCall,
    StreamedText,
    Tokens,
)

EXAMPLE = (
    '{"text": "I look first.", "calls": [{"name": "read_file", "arguments": {"path": "a.txt"}}]}'
)

_KEYS = ("text", "calls")
_CALL_KEYS = ("name", "arguments", "namespace")


class BadAnswer(Exception):
    """The answer cannot be sent. The message says what is wrong with it."""


def answer_from_text(raw: bytes, ask: Ask) -> ServedAnswer:
    """Plain text as the model's words, without the line break at its end. Raises `BadAnswer`."""
    text = _decoded(raw).removesuffix("\n")
    if not text.strip():
        raise BadAnswer("it is empty; write what the model says")
    return _answer(text, (), ask)


def answer_from_json(raw: bytes, ask: Ask) -> ServedAnswer:
    """An object with `text`, `calls` or both. Raises `BadAnswer`."""
    try:
        data = json.loads(_decoded(raw))
    except (ValueError, RecursionError) as error:
        raise BadAnswer(f"it is not valid JSON: {error}") from None
    if not isinstance(data, dict):
        raise BadAnswer("it must be a JSON object")
    _no_other_keys("the answer", data, _KEYS)
    text, calls = data.get("text", ""), data.get("calls", [])
    if not isinstance(text, str):
        raise BadAnswer('"text" must be a string')
    if not isinstance(calls, list):
        raise BadAnswer('"calls" must be a list')
    if not text.strip() and not calls:
        raise BadAnswer('it has no content; give "text", "calls" or both')
    named = tuple(_call(f"calls[{at}]", call, ask.tools) for at, call in enumerate(calls))
    return _answer(text, named, ask)


def _call(location: str, data: Any, offered: Sequence[OfferedTool]) -> ServedCall:
    if not isinstance(data, dict):
        raise BadAnswer(f'{location} must be an object with "name" and "arguments"')
    _no_other_keys(location, data, _CALL_KEYS)
    name, arguments = data.get("name"), data.get("arguments", {})
    tool = _tool(location, name, data.get("namespace"), offered)
    if not isinstance(arguments, dict):
        raise BadAnswer(f"{location}.arguments must be an object")
    if not tool.custom:
        return ServedCall(tool.name, arguments, namespace=tool.namespace)
    if list(arguments) != ["input"] or not isinstance(arguments["input"], str):
        raise BadAnswer(
            f'{location}: {tool.name!r} takes plain text: "arguments": {{"input": "…"}}'
        )
    return ServedCall(tool.name, input=arguments["input"], namespace=tool.namespace)


def _tool(location: str, name: Any, namespace: Any, offered: Sequence[OfferedTool]) -> OfferedTool:
    fitting = [
        tool for tool in offered if tool.name == name and namespace in (None, tool.namespace)
    ]
    if not fitting:
        names = ", ".join(tool.name for tool in offered) or "none"
        raise BadAnswer(f"{location}: the request offers no tool {name!r}; offered: {names}")
    spaces = {tool.namespace for tool in fitting}
    if len(spaces) > 1:
        namespaces = ", ".join(sorted(map(repr, spaces)))
        raise BadAnswer(
            f'{location}: several tools are called {name!r}; add "namespace": one of {namespaces}'
        )
    return fitting[0]


def _no_other_keys(location: str, data: dict[str, Any], allowed: Sequence[str]) -> None:
    other = next((key for key in data if key not in allowed), None)
    if other is not None:
        raise BadAnswer(f"{location} has the unknown key {other!r}; keys: {', '.join(allowed)}")


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadAnswer(f"it is not valid UTF-8 (byte {error.start + 1})") from None


def _answer(text: str, calls: tuple[ServedCall, ...], ask: Ask) -> ServedAnswer:
    output = len(text) + sum(len(call.arguments_json) for call in calls)
    tokens = Tokens(input=ask.input_characters // 4, output=max(1, output // 4))
    return ServedAnswer(StreamedText(text), tokens, calls=calls)


ANSWER_LIMIT_BYTES = 16 * 1024 * 1024
State = Literal["waiting", "answered", "timed out", "client left", "server ended"]

_NUMBERED = re.compile(r"(\d{4,9})-")
_REQUEST = re.compile(r"(\d{4,9})-request\.json")
_LOCK = ".lock"

Version = tuple[int, int, int]
"""Inode, size and time of change: what differs once a file was written anew."""


@dataclass
class RelayExchange:
    """One request, its files, and how far it is."""

    folder: Path
    number: int
    ask: Ask
    same_as: int | None = None
    """An earlier request with the same body: most clients ask again after a failure."""
    state: State = "waiting"
    _refused: tuple[str, Version] | None = None

    @property
    def name(self) -> str:
        return f"{self.number:04d}"

    def path(self, kind: str) -> Path:
        """`request.json`, `request.md`, `answer.json`, `answer.md`, `answer.error` or `closed.json`."""
        return self.folder / f"{self.name}-{kind}"

    def read_answer(self) -> ServedAnswer | None:
        """The answer once a good one is there. What is wrong with a bad one goes into `answer.error`."""
        for kind, read in (("answer.json", answer_from_json), ("answer.md", answer_from_text)):
            version = _version(self.path(kind))
            if version is None or self._refused == (kind, version):
                continue
            try:
                answer = read(_content(self.path(kind)), self.ask)
            except BadAnswer as bad:
                self._refused = (kind, version)
                self._explain(kind, str(bad))
                continue
            self.path("answer.error").unlink(missing_ok=True)
            return answer
        return None

    def write_answer(self, answer: Mapping[str, Any]) -> None:
        """Put an answer into place, as another program would. Raises `BadAnswer` and `OSError`."""
        text = json.dumps(answer, ensure_ascii=False, indent=1)
        answer_from_json(text.encode(errors="backslashreplace"), self.ask)
        write_whole(self.path("answer.json"), text)

    def close(self, state: State) -> None:
        """Say that nobody waits for an answer any more, and why."""
        self.state = state
        with suppress(OSError):
            write_whole(self.path("closed.json"), _closed(state))

    def _explain(self, kind: str, problem: str) -> None:
        explanation = (
            f"{self.name}-{kind} cannot be sent: {problem}\n"
            f"The request is still waiting. Write the whole file again (write a draft, then rename it).\n"
            f"{self.name}-answer.json looks like this:\n{EXAMPLE}\n"
            f"{self.name}-answer.md is plain text without calls.\n"
        )
        with suppress(OSError):
            write_whole(self.path("answer.error"), explanation)


class ExchangeFolder:
    """Numbers requests and writes them down. Held by one process at a time."""

    def __init__(self, folder: Path) -> None:
        """Make the folder if there is none and take it. Raises `BadInput` and `NotPossibleNow`."""
        self.path = folder.absolute()
        try:
            make_private_folder(self.path)
            self._lock = take_file_lock(self.path / _LOCK)
        except BlockingIOError:
            raise NotPossibleNow(
                f"another model server uses {str(folder)!r}; stop it, or choose another --folder"
            ) from None
        except OSError as error:
            raise BadInput(f"{str(folder)!r} cannot be used: {error.strerror}") from None
        self._number = self._close_what_a_crash_left()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._lock)

    def begin(self, ask: Ask, same_as: int | None) -> RelayExchange:
        """The next exchange. Its files are written by `write_request`."""
        self._number += 1
        return RelayExchange(self.path, self._number, ask, same_as)

    def _close_what_a_crash_left(self) -> int:
        """Close requests whose server was killed, and give the highest number in use."""
        names = [entry.name for entry in os.scandir(self.path)]
        for name in names:
            request = _REQUEST.fullmatch(name)
            if request and f"{request[1]}-closed.json" not in names:
                write_whole(self.path / f"{request[1]}-closed.json", _closed("server ended"))
        numbers = (_NUMBERED.match(name) for name in names)
        return max((int(number[1]) for number in numbers if number), default=0)


def write_request(exchange: RelayExchange, raw: str, readable: str) -> None:
    """The raw request last: who waits for it finds the readable one too. Raises `OSError`."""
    write_whole(exchange.path("request.md"), readable)
    write_whole(exchange.path("request.json"), raw)


def write_whole(path: Path, text: str) -> None:
    """Put the text in the file, whole or not at all. Raises `OSError`."""
    handle, draft = tempfile.mkstemp(prefix=".draft-", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        Path(draft).replace(path)
    except OSError:
        with suppress(OSError):
            Path(draft).unlink()
        raise


def _closed(state: State) -> str:
    return json.dumps({"state": state, "at": datetime.now(UTC).isoformat(timespec="seconds")})


def _version(path: Path) -> Version | None:
    try:
        info = path.stat()
    except OSError:
        return None
    return info.st_ino, info.st_size, info.st_mtime_ns


def _content(path: Path) -> bytes:
    try:
        # A pipe or a device would never end, or block everybody.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise BadAnswer("it is not a regular file")
            content = file.read(ANSWER_LIMIT_BYTES + 1)
    except OSError as error:
        raise BadAnswer(f"it cannot be read: {error.strerror}") from None
    if len(content) > ANSWER_LIMIT_BYTES:
        raise BadAnswer(f"it is longer than {ANSWER_LIMIT_BYTES} bytes")
    return content
