"""What the sense loop keeps in files: its lock and memory, the last bundle and plan, logs, telemetry.

Nothing here may break a tick. What cannot be written is said in `faults`, and the tick goes on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from podium.bridge.folders import opened_folder, read_plain, replace_file
from podium.bridge.locking import held_alone
from podium.bridge.redacting import Redact, redacted
from podium.bridge.rotating import LineFile
from podium.domain.errors import NotPossibleNow
from podium.domain.model import Json, Moment, json_of, whole_text
from podium.domain.seeing import is_seen, written
from podium.domain.sensing import Bundle, SenseMemory, TickOutcome
from podium.ports.clock import Clock

STATE = ".podium/sense"
MEMORY = "memory.json"
BUNDLE = "context_bundle.json"
PLAN = "plan.json"
LOCK = "lock"

_FORMAT = 1
_MEMORY_LIMIT_BYTES = 20_000_000
_LONGEST_LINE = 20_000
_Level = Literal["INFO", "WARNING"]


@dataclass(frozen=True)
class RecordFiles:
    """Where the loop writes for other programs, from the root on."""

    log: str
    parser_log: str
    telemetry: str


class FileRecord:
    """The files of one root. Texts are written without secrets."""

    def __init__(
        self,
        root: Path,
        files: RecordFiles,
        *,
        clock: Clock,
        redact: Redact,
        limit_bytes: int = 5_000_000,
        bundle_text: Callable[[Bundle], str] = json_of,
    ) -> None:
        """`limit_bytes`: so large a log or telemetry file is turned over. `bundle_text`: a bundle as JSON."""
        self._root = root
        self._files = files
        self._clock = clock
        self._redact = redact
        self._bundle_text = bundle_text
        self._lines = {
            place: LineFile(root, place, limit_bytes=limit_bytes)
            for place in (files.log, files.parser_log, files.telemetry)
        }
        self._faults: dict[str, str] = {}
        self._unwritten: SenseMemory | None = None

    @property
    def faults(self) -> tuple[str, ...]:
        """What cannot be written just now, in words, each file once. Gone when it can be again."""
        return tuple(self._faults.values())

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Raises also `NotPossibleNow`, when the state folder cannot be written."""
        what = f"the sense loop of {str(self._root)!r}"
        with (
            opened_folder(self._root, STATE, make=True, mode=0o700) as folder,
            held_alone(folder, LOCK, what=what, since=self._clock.now()),
        ):
            try:
                yield
            finally:
                # From here on others may remember something newer.
                self._unwritten = None

    def memory(self) -> SenseMemory:
        if self._unwritten is not None:
            return self._unwritten
        try:
            with opened_folder(self._root, STATE) as folder:
                content = read_plain(folder, MEMORY, _MEMORY_LIMIT_BYTES)
            return _remembered(content)
        except FileNotFoundError:
            return SenseMemory()
        except (NotPossibleNow, _Unusable) as error:
            self._say(f"memory is begun anew, since {MEMORY} cannot be used: {error}", "WARNING")
            return SenseMemory()

    def remember(self, memory: SenseMemory) -> bool:
        lasts = bool(self._keep(MEMORY, lambda: self._memory_document(memory)))
        self._unwritten = None if lasts else memory
        return lasts

    def keep_bundle(self, bundle: Bundle) -> str:
        """Gives its path from the root on; nothing if it could not be written."""
        return self._keep(
            BUNDLE, lambda: redacted(json.loads(self._bundle_text(bundle)), self._redact)
        )

    def keep_plan(self, document: Json) -> str:
        """As `keep_bundle`, for the plan as the planner gave it."""
        return self._keep(PLAN, lambda: redacted(whole_text(document), self._redact))

    def log(self, text: str, *, at: Moment, kind: Literal["main", "parser"] = "main") -> None:
        self._log(self._files.log if kind == "main" else self._files.parser_log, text, at)

    def tick_ended(self, outcome: TickOutcome) -> None:
        # By the moment it ended: lines that the tick wrote before it are older.
        self._log(self._files.log, outcome.summary(), self._clock.now())
        document = redacted(json.loads(json_of(outcome)), self._redact)
        self._add(self._files.telemetry, json.dumps({**document, "event": "tick"}))

    def _say(self, text: str, level: _Level) -> None:
        self._log(self._files.log, text, self._clock.now(), level)

    def _log(self, place: str, text: str, at: Moment, level: _Level = "INFO") -> None:
        self._add(
            place,
            f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ} [{level}] {one_line(self._redact(text))}",
        )

    def _add(self, place: str, line: str) -> None:
        with self._told(place):
            self._lines[place].add(line)

    def _memory_document(self, memory: SenseMemory) -> Json:
        document = json.loads(json_of(memory))
        # The rest is digests, numbers and ids, which must come back as they were.
        document["last_plan"] = redacted(document["last_plan"], self._redact)
        return {"format": _FORMAT, **document}

    def _keep(self, name: str, document: Callable[[], Json]) -> str:
        place = f"{STATE}/{name}"
        with self._told(place):
            content = json.dumps(document(), indent=2, default=str) + "\n"
            with opened_folder(self._root, STATE, make=True, mode=0o700) as folder:
                replace_file(folder, name, content.encode(), mode=0o600)
        return "" if place in self._faults else place

    @contextmanager
    def _told(self, place: str) -> Iterator[None]:
        try:
            yield
        except (NotPossibleNow, OSError) as error:
            self._faults[place] = f"{place}: {error}"
        except RecursionError:  # planners may nest without end
            self._faults[place] = f"{place}: its values nest too deep to be written"
        else:
            self._faults.pop(place, None)


class _Unusable(Exception):
    """What was remembered cannot be used. The message says why."""


def _remembered(content: bytes) -> SenseMemory:
    try:
        document = json.loads(content)
        form = document.pop("format")
        if form != _FORMAT:
            raise _Unusable(f"it has format {form!r}, made by another version of Podium")
        return SenseMemory.model_validate_json(json.dumps(document))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"]))
        raise _Unusable(f"{key}: {first['msg']}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise _Unusable("it is not what Podium writes there") from None


def one_line(text: str) -> str:
    r"""The text on one line that steers no terminal: what cannot be seen is written out, as `\n` or `\x1b`."""
    cut = text if len(text) <= _LONGEST_LINE else f"{text[:_LONGEST_LINE]}…"
    return "".join(char if char == " " or is_seen(char) else written(char) for char in cut)
