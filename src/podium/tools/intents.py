"""What a call is about to do, made durable before it does it.

Adding a line is repeatable only for somebody who knows how the file looked before. So the first try
of a call fixes that in a small file under the call's key; a try after a crash reads it and can tell
what was done from what was not.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from podium.domain.errors import ToolBroke
from podium.domain.model import Json
from podium.platform import make_private_folder
from podium.tools.kept import keep
from podium.tools.scope import ToolScope

_FOLDER = "intents"
_OLD_SECONDS = 90 * 86_400.0
"""After that long nobody takes up a call again."""


def key_digest(scope: ToolScope) -> str:
    """A name for files of this call, the same at every try."""
    return hashlib.sha256(scope.key.encode()).hexdigest()[:32]


def recall(scope: ToolScope) -> dict[str, Json] | None:
    """What an earlier try of this call fixed. None: this is the first."""
    file = _file(scope)
    try:
        found = json.loads(file.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError:
        found = None
    fixed = found.get("fixed") if isinstance(found, dict) else None
    if not isinstance(fixed, dict) or found.get("call") != scope.key:
        raise ToolBroke(
            f"{str(file)!r} should say what an earlier try of this call was about to do, and cannot "
            "be read; look at what the call names, and send a new order for what is still missing"
        )
    return fixed


def fix(scope: ToolScope, fixed: dict[str, Json]) -> dict[str, Json]:
    """Keep what this call is about to do. On return it survives a crash."""
    file = _file(scope)
    make_private_folder(file.parent)
    draft = file.with_suffix(".tmp")
    with draft.open("w") as opened:
        json.dump({"call": scope.key, "fixed": fixed}, opened)
        opened.flush()
        os.fsync(opened.fileno())
    draft.replace(file)
    _make_durable(file.parent)
    # Now and then is enough, and which calls pay for it is the same on every machine.
    if file.name.startswith("00"):
        _forget_old(file.parent)
    return fixed


@contextlib.contextmanager
def attempt(scope: ToolScope, nothing_done: Callable[[], bool]) -> Iterator[None]:
    """Act within this. A try that fails and has done nothing leaves no intent: a later one begins anew."""
    try:
        yield
    except Exception:
        if nothing_done():
            _file(scope).unlink(missing_ok=True)
        raise


def keep_for_undo(scope: ToolScope, content: bytes) -> bool:
    """Keep an earlier content. False when it is not kept: one that holds a secret never is."""
    text = content.decode(errors="replace")
    if scope.kept_folder is None or scope.redact(text) != text:
        return False
    keep(scope.kept_folder, content)
    return True


def _file(scope: ToolScope) -> Path:
    if scope.kept_folder is None:
        raise ToolBroke(
            f"{scope.call.tool!r} has no folder to keep what it is about to do, without which a crash "
            "could make it act twice; give the toolbox a `kept_folder`"
        )
    return scope.kept_folder / _FOLDER / f"{key_digest(scope)}.json"


def _make_durable(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _forget_old(folder: Path) -> None:
    # Held against times of files, which are the system's too.
    oldest = time.time() - _OLD_SECONDS
    for file in folder.iterdir():
        # Another process may be faster.
        with contextlib.suppress(FileNotFoundError):
            if file.stat().st_mtime < oldest:
                file.unlink()
