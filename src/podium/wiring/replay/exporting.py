"""A trace for others: it names no folder of this machine, and replays to the same bytes wherever it lies.

Digests of calls cover the folder they are made in, so they cannot be rewritten as text: the run happens
again in a folder that is none, and what is recorded then is the trace.
"""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Mapping

from podium.domain.errors import BadInput
from podium.domain.model import Json
from podium.wiring.podium import Podium
from podium.wiring.replay.finding import Found
from podium.wiring.replay.reading import Recording, read_recording
from podium.wiring.replay.replaying import NEUTRAL_ROOT, replay, replay_at

HOME = "/podium/home"
PROJECT = "/podium/project"
HOST = "host"
PREFIX = "/usr"


async def exported(podium: Podium, found: Found, root: str) -> bytes:
    """The trace of a run that worked in `root`. Raises `BadInput` when it cannot do without that name."""
    job, terms = found.job, found.settings
    there = _recording(_renamed(found.recording, _names(podium, root)), found.recording.name)
    again = await replay_at(podium, there, job, NEUTRAL_ROOT, terms, rebuilt=("digest",))
    if again.difference is None:
        neutral = _recording(again.lines, found.recording.name)
        again = await replay(podium, neutral, job=job, roots=(), settings=terms)
    if again.difference is not None:
        at, kind = again.difference.seq, again.difference.type
        raise BadInput(
            f"{found.recording.name}: event {at} ({kind}) depends on the folder that the run worked in; record it "
            "with paths from that folder on"
        )
    return _written(again.lines)


def _names(podium: Podium, root: str) -> dict[str, str]:
    """Folders of this machine → what they are called elsewhere, the innermost first."""
    names = {
        # Tracebacks of commands name where Python lies.
        sys.base_prefix: PREFIX,
        podium.environ.get("HOME", ""): HOME,
        str(podium.folders.user_state): HOME,
        str(podium.folders.project.resolve()): PROJECT,
        root: NEUTRAL_ROOT,
    }
    telling = [name for name in names if name not in ("", "/", PREFIX)]
    return {name: names[name] for name in sorted(telling, key=len, reverse=True)}


def _renamed(recording: Recording, names: Mapping[str, str]) -> tuple[dict[str, Json], ...]:
    text = json.dumps([event.data for event in recording.events])
    for name, other in names.items():
        whole = rf"(?<![\w.-]){re.escape(json.dumps(name)[1:-1])}(?![\w.-])"
        text = re.sub(whole, other, text)
    lines: list[dict[str, Json]] = json.loads(text)
    return tuple({**line, "host": HOST} if line["type"] == "run_pinned" else line for line in lines)


def _recording(lines: tuple[dict[str, Json], ...], name: str) -> Recording:
    return read_recording(io.BytesIO(_written(lines)), name)


def _written(lines: tuple[dict[str, Json], ...]) -> bytes:
    text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
    return text.encode(errors="backslashreplace")
