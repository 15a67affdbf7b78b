"""What the sense loop keeps in files: its lock and memory, the last bundle and plan, logs, telemetry."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from podium.bridge.redacting import Redact, redacted
from podium.bridge.tick_files import MEMORY, RecordFiles, TickFiles, read_state
from podium.domain.errors import NotPossibleNow
from podium.domain.model import Json, json_of, whole_text
from podium.domain.sensing import Bundle, SenseMemory, TickOutcome
from podium.ports.clock import Clock

BUNDLE = "context_bundle.json"
PLAN = "plan.json"

_FORMAT = 1


class FileRecord(TickFiles):
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
        """`bundle_text`: a bundle as JSON."""
        super().__init__(root, files, clock=clock, redact=redact, limit_bytes=limit_bytes)
        self._bundle_text = bundle_text
        self._unwritten: SenseMemory | None = None

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Raises also `NotPossibleNow`, when the state folder cannot be written."""
        with super().alone():
            try:
                yield
            finally:
                # From here on others may remember something newer.
                self._unwritten = None

    def memory(self) -> SenseMemory:
        if self._unwritten is not None:
            return self._unwritten
        try:
            return _remembered(read_state(self._root, MEMORY))
        except FileNotFoundError:
            return SenseMemory()
        except (NotPossibleNow, _Unusable) as error:
            text = f"memory is begun anew, since {MEMORY} cannot be used: {error}"
            self._log(self._files.log, text, self._clock.now(), "WARNING")
            return SenseMemory()

    def remember(self, memory: SenseMemory) -> bool:
        lasts = bool(self.keep(MEMORY, lambda: self._memory_document(memory)))
        self._unwritten = None if lasts else memory
        return lasts

    def keep_bundle(self, bundle: Bundle) -> str:
        """Gives its path from the root on; nothing if it could not be written."""
        return self.keep(
            BUNDLE, lambda: redacted(json.loads(self._bundle_text(bundle)), self._redact)
        )

    def keep_plan(self, document: Json) -> str:
        """As `keep_bundle`, for the plan as the planner gave it."""
        return self.keep(PLAN, lambda: redacted(whole_text(document), self._redact))

    def tick_ended(self, outcome: TickOutcome) -> None:
        self.end_tick(outcome.summary(), redacted(json.loads(json_of(outcome)), self._redact))

    def _memory_document(self, memory: SenseMemory) -> Json:
        document = json.loads(json_of(memory))
        # The rest is digests, numbers and ids, which must come back as they were.
        document["last_plan"] = redacted(document["last_plan"], self._redact)
        return {"format": _FORMAT, **document}


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
