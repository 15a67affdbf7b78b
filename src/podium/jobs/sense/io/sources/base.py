"""Base classes of sources: watched files and asked systems, their bytes as JSON values, secrets removed."""

from __future__ import annotations

import asyncio
import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NoReturn

from podium.core.model import Json, whole_text
from podium.jobs.sense.io.redaction import redacted
from podium.jobs.sense.io.sources.file_selection import (
    SECOND_NS,
    FileSelection,
    NotSensed,
    SourceDeps,
    SourceFile,
    etag_of,
    settles,
    without_login,
)
from podium.jobs.sense.models import Condition, Look, Sensed

HIDDEN = "[hidden]"

_NAMES = (
    r"pass(?:word|wd|phrase)|secret|token|authorization|credentials?"
    r"|(?:api|access|secret|private|auth)[_-]?key"
)
_NAMED = re.compile(
    rf"""(?P<before>(?:{_NAMES})\\?["']?[ \t]{{0,3}}[=:][ \t]{{0,3}})"""
    r"""(?P<value>(?:(?:bearer|basic|digest|token)[ \t]{1,3})?"""
    r"""(?:\\"[^"\n]{1,1000}?\\"|"(?:[^"\\\n]|\\.){1,1000}"|'[^'\n]{1,1000}'|[^\s,;&]+))""",
    re.IGNORECASE,
)
_SECRET_KEY = re.compile(rf"(?:{_NAMES})\Z", re.IGNORECASE)
_NO_SECRETS = ("true", "false", "null", "none", "yes", "no", "required", "missing")


def hiding(redact: Callable[[str], str]) -> Callable[[str], str]:
    """The same, and what stands behind words such as password, token or api_key is hidden too."""

    def redact_and_hide(text: str) -> str:
        return _NAMED.sub(_hidden, redact(text))

    return redact_and_hide


def named_hidden(value: Json) -> Json:
    """A copy of the JSON value in which texts under such a key are hidden whole."""
    if isinstance(value, list):
        return [named_hidden(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: HIDDEN if _SECRET_KEY.search(key) and _is_secret(item) else named_hidden(item)
        for key, item in value.items()
    }


def _is_secret(value: Json) -> bool:
    return isinstance(value, str) and bool(value) and value.lower() not in _NO_SECRETS


def _hidden(match: re.Match[str]) -> str:
    value = match["value"].strip("\\\"'")
    if value.startswith("[redacted:") or not _is_secret(value):
        return match[0]
    return match["before"] + HIDDEN


_FRESH_SECONDS = 10.0
"""For so long what was found for the mark stands for a look, once."""


class AskedSource(ABC):
    """One thing that is asked for: once for a mark and the look after it."""

    def __init__(self, deps: SourceDeps, name: str, location: str) -> None:
        """`place` is what it is called in a look: a command, an address, a path."""
        self._deps = deps
        self._name = name
        self._location = location
        self._fresh_look: tuple[float, Look] | None = None

    @abstractmethod
    async def _ask(self) -> tuple[Condition, str, Json]:
        """Condition, why, content. Raises `NotSensed`."""

    @property
    def name(self) -> str:
        return self._name

    async def etag(self) -> str:
        look = await self._look()
        self._fresh_look = (self._deps.clock.monotonic(), look)
        return look.mark

    async def look(self) -> Look:
        look, self._fresh_look = self._fresh_look, None
        if look and self._deps.clock.monotonic() - look[0] < _FRESH_SECONDS:
            return look[1]
        return await self._look()

    async def _look(self) -> Look:
        condition: Condition
        try:
            condition, why, content = await self._ask()
        except NotSensed as problem:
            condition, why, content = problem.condition, problem.why, problem.content
        redact = self._deps.redact
        return _look_at(
            Sensed(
                source=self._name,
                place=redact(whole_text(self._location)),
                condition=condition,
                why=redact(whole_text(why)),
                content=redacted(named_hidden(content), redact),
            )
        )


def _look_at(sensed: Sensed) -> Look:
    """The look of a source that finds one thing and has to find it to know whether it changed."""
    facts = (sensed.place, sensed.condition, sensed.why, sensed.stale, sensed.content)
    return Look(source=sensed.source, found=(sensed,), total=1, mark=etag_of(*facts))


_FIRST = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_NS = 253_402_300_799 * SECOND_NS
"""The end of the year 9999. File systems know later times, which no calendar of ours holds."""


@dataclass(frozen=True)
class _CachedReading:
    signature: tuple[int, ...]
    sensed: Sensed


class WatchedSource(ABC):
    """The files of one source, and what was found in them when they were last read."""

    def __init__(self, deps: SourceDeps, name: str, selection: FileSelection) -> None:
        self._deps = deps
        self._name = name
        self.selection = selection
        self._cache: dict[str, _CachedReading] = {}

    @abstractmethod
    def _read(self, file: SourceFile) -> tuple[Condition, str, Json]:
        """Condition, why, content of a file. Raises `NotSensed`."""

    @property
    def name(self) -> str:
        return self._name

    async def etag(self) -> str:
        return await asyncio.to_thread(lambda: self.selection.etag(*self._files(), self._now_ns()))

    async def look(self) -> Look:
        return await asyncio.to_thread(lambda: self._look(*self._files()))

    def _files(self) -> tuple[Sequence[SourceFile], int]:
        return self.selection.files(self._deps.root, self._deps.is_own)

    def _look(self, files: Sequence[SourceFile], total: int) -> Look:
        now = self._now_ns()
        sensed = tuple(self._sensed(file, now) for file in files)
        paths = {file.path for file in files}
        self._cache = {path: cached for path, cached in self._cache.items() if path in paths}
        etag = self.selection.etag(files, total, now)
        return Look(source=self._name, found=sensed, total=total, mark=etag)

    def _sensed(self, file: SourceFile, now: int) -> Sensed:
        cached = self._cache.get(file.path)
        if cached is not None and cached.signature == file.signature:
            sensed = cached.sensed
        else:
            sensed = self._read_safely(file)
            if file.signature and not settles(file, now):
                self._cache[file.path] = _CachedReading(file.signature, sensed)
        stale = self.selection.is_stale(file, now)
        return sensed.model_copy(update={"stale": True}) if stale else sensed

    def _read_safely(self, file: SourceFile) -> Sensed:
        condition: Condition
        try:
            if file.problem:
                raise file.problem
            condition, why, content = self._read(file)
        except NotSensed as problem:
            condition, why, content = problem.condition, problem.why, problem.content
        redact = self._deps.redact
        return Sensed(
            source=self._name,
            place=redact(whole_text(file.path)),
            condition=condition,
            why=redact(whole_text(why)),
            content=redacted(named_hidden(content), redact),
            seen_at=datetime_of(file.changed_ns) if file.signature else None,
        )

    def _now_ns(self) -> int:
        return int(self._deps.clock.now().timestamp() * SECOND_NS)


def datetime_of(nanoseconds: int) -> datetime:
    return _FIRST + timedelta(microseconds=max(0, min(nanoseconds, _LAST_NS)) // 1000)


DEPTH_LIMIT = 40
"""Deeper nesting is nobody's state, and would be too much for whoever walks it."""


def understand(name: str, content: bytes) -> Json:
    """By the ending of the name: JSON, YAML or text. Raises `NotSensed`."""
    text = text_of(content)
    ending = name.rpartition(".")[2].lower()
    if ending not in ("json", "yaml", "yml"):
        return text
    if not text.strip():
        raise NotSensed("malformed", "it is empty, as a file is that is only being written")
    if ending == "json":
        return json_value(text)
    return _yaml_value(content)


def understand_output(content: bytes) -> Json:
    """JSON where it is, else text. Raises `NotSensed` when it is not even that."""
    text = text_of(content)
    if text.lstrip()[:1] not in ("{", "["):
        return text
    try:
        return json_value(text)
    except NotSensed:
        return text


def text_of(content: bytes) -> str:
    if b"\0" in content:
        raise NotSensed("binary", "it holds zero bytes, so it is no text")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NotSensed("binary", f"it is no UTF-8 text: byte {error.start}") from None


def json_value(text: str) -> Json:
    try:
        value = json.loads(text, parse_constant=_no_number, parse_float=_finite)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise NotSensed("malformed", f"not JSON: {error.msg}: {where}") from None
    except RecursionError:
        raise NotSensed("malformed", "it nests too deep") from None
    except ValueError as error:
        raise NotSensed("malformed", f"not JSON: {error}") from None
    _must_be_shallow(value)
    return value


def _yaml_value(content: bytes) -> Json:
    # YAML takes a while to import, and a root without sessions does not need it.
    from podium.jobs.sense.io.plain_yaml import NotPlain, parse_plain

    try:
        value = parse_plain(content)
    except NotPlain as error:
        raise NotSensed("malformed", str(error)) from None
    if value is None:
        raise NotSensed("malformed", "it holds no value")
    return value


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _no_number(text)


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text[:20]} is no number")


def _must_be_shallow(value: Json) -> None:
    """Level by level, without recursion."""
    level = [value]
    for _ in range(DEPTH_LIMIT + 1):
        level = [item for parent in level for item in _inside(parent)]
        if not level:
            return
    raise NotSensed("malformed", f"it nests deeper than {DEPTH_LIMIT} levels")


def _inside(value: Json) -> list[Json]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


NOT_TRUSTED = "nobody has trusted podium.yaml as it is now; read it, then say `podium trust`"


class UntrustedSource(AskedSource):
    """Stands where a command or an address would be, and says what a person has to do."""

    def __init__(self, deps: SourceDeps, name: str, target: str) -> None:
        """`wish` is the command or the address that the project's file names."""
        super().__init__(deps, name, without_login(target))

    async def _ask(self) -> tuple[Condition, str, Json]:
        raise NotSensed("unreadable", NOT_TRUSTED)
