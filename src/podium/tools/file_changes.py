"""File changes that can be undone: canonical paths below the root, intents made durable first, former contents, one change at a time, several files all
or none; diffs for results.

Adding a line is repeatable only for somebody who knows how the file looked before. So the first try
of a call fixes that in a small file under the call's key; a try after a crash reads it and can tell
what was done from what was not.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import tempfile
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from podium.core.decisions import CallOutcome, PathUse
from podium.core.errors import OutcomeUnknown, ToolBroke
from podium.core.model import Json
from podium.core.protected_paths import GIT_DIR, STATE_DIR, protected_name
from podium.platform import make_private_folder
from podium.platform.file_lock import file_lock
from podium.platform.safe_files import (
    find_below,
    remove_below,
    status_below,
    write_below,
)
from podium.platform.safe_open import check_plain
from podium.tools.edits import EditRefused, MatchCandidate
from podium.tools.scope import REFERENCE, ToolScope, inside

MAX_BYTES = 20_000_000
"""Files beyond are neither changed nor copied."""
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Kinds of characters that a person who reads a path does not see."""


def place_of(scope: ToolScope, argument: str = "path") -> str:
    """The judged path from the root on. Raises `ToolBroke` for one that no operation may act on."""
    scope.relative(argument)
    return place_at(scope, next(use for use in scope.call.paths if use.argument == argument))


def place_at(scope: ToolScope, use: PathUse) -> str:
    """The same of one judged path."""
    path = inside(scope.root, use.real, use.given)
    if path == ".":
        raise ToolBroke(f"{use.given!r} is the root itself; name something inside it")
    _refuse_unseen(use.given)
    _refuse_owned(path, (*PurePosixPath(path).parts, *PurePosixPath(use.given).parts))
    _refuse_links(scope, use)
    return path


def _refuse_unseen(given: str) -> None:
    for char in given:
        if unicodedata.category(char) in _UNSEEN:
            raise ToolBroke(
                f"{given!r} has the character U+{ord(char):04X}, which does not show; leave it out"
            )


def _refuse_owned(path: str, parts: Iterable[str]) -> None:
    names = {protected_name(part) for part in parts}
    if GIT_DIR in names:
        raise ToolBroke(f"{path!r} belongs to git and is changed by git commands alone")
    if STATE_DIR in names:
        raise ToolBroke(f"{path!r} belongs to Podium, which keeps its record there; leave it alone")


def _refuse_links(scope: ToolScope, use: PathUse) -> None:
    """What is judged is where a link leads; what is meant may be the link."""
    if os.path.normpath(scope.root / use.given) != use.real:
        raise ToolBroke(
            f"{use.given!r} goes through a symbolic link; name the place itself, from the root on"
        )


def must_be_file(found: os.stat_result | None, path: str) -> os.stat_result:
    """Raise `ToolBroke` or `NotPlainFile` unless it is a plain file with this one name."""
    if found is None:
        raise ToolBroke(f"there is no {path!r}; list the folder to see what there is")
    check_plain(found, path, single_name=True)
    return found


def refuse_references(value: Json) -> None:
    """Raise `ToolBroke` when a text would put a secret into a file."""
    for text in _texts(value):
        if (reference := REFERENCE.search(text)) is not None:
            raise ToolBroke(
                f"secrets are not written to files, and the text holds {reference[0]!r}; let the "
                "program read a variable instead"
            )


def _texts(value: Json) -> Iterable[str]:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict):
            waiting += [*each.keys(), *each.values()]
        elif isinstance(each, list):
            waiting += each


def sha256_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def keep(folder: Path, content: bytes) -> str:
    """Store the content and give its hash. On return it survives a crash."""
    digest = sha256_of(content)
    target = folder / digest
    if target.exists():
        return digest
    make_private_folder(folder)
    handle, draft = tempfile.mkstemp(dir=folder)
    with open(handle, "wb") as file:  # noqa: PTH123 - a handle, not a path
        file.write(content)
        file.flush()
        os.fsync(handle)
    Path(draft).replace(target)
    return digest


def kept(folder: Path | None, digest: str) -> bytes:
    """The content with this hash. Raises `ToolBroke` when it is not there or was changed."""
    if folder is None:
        raise ToolBroke("earlier contents are not kept here, so there is nothing to put back")
    try:
        content = (folder / digest).read_bytes()
    except FileNotFoundError as error:
        raise ToolBroke(f"the content with hash {digest!r} is not kept any more") from error
    if sha256_of(content) != digest:
        raise ToolBroke(f"the content kept under hash {digest!r} was changed; it is not put back")
    return content


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


_TURNS_FOLDER = "turns"


@contextlib.contextmanager
def in_turn(scope: ToolScope, *paths: str) -> Iterator[None]:
    """While open, no other call of this root makes a new content of these files'. Waits for its turn.

    The lock lies beside what is kept, never beside the file: it dies with its process, and readers of
    the folder never see it.
    """
    if scope.kept_folder is None:
        yield  # then nothing can be fixed either, and the call is refused for that
        return
    folder = scope.kept_folder / _TURNS_FOLDER
    make_private_folder(folder)
    with contextlib.ExitStack() as held:
        for name in _locks_of(paths):
            held.enter_context(file_lock(folder / name))
        yield


def _locks_of(paths: Iterable[str]) -> list[str]:
    """Names of their locks. Each once and in one order for all, or two calls could wait for each other."""
    # On file systems that see no case one file has many names; waiting for a stranger costs nothing.
    folded = (path.casefold().encode(errors="backslashreplace") for path in paths)
    return sorted({hashlib.sha256(each).hexdigest()[:2] for each in folded})


@dataclass(frozen=True)
class FileState:
    """What stands at a place now. None: nothing."""

    content: bytes | None
    mode: int | None = None

    @property
    def sha256(self) -> str | None:
        return None if self.content is None else sha256_of(self.content)


@dataclass(frozen=True)
class FileReplacement:
    """A place, what stands there, and what shall. Permission bits stay with the place."""

    path: str
    before: FileState
    after: FileState


def standing_at(scope: ToolScope, path: str) -> FileState:
    """The plain file there. Raises `NotPlainFile` for anything else, and for one with a second name."""
    content = find_below(scope.root, path, MAX_BYTES, single_name=True)
    found = status_below(scope.root, path) if content is not None else None
    return FileState(content, stat.S_IMODE(found.st_mode) & 0o777 if found else None)


def replace_all(scope: ToolScope, replacements: Sequence[FileReplacement]) -> None:
    """Make them all, removals last. What was made is taken back when a later one fails.

    Each file changes in one step and is durable. Raises `OutcomeUnknown` when one cannot be taken
    back: then some are made and some are not.
    """
    made: list[FileReplacement] = []
    for each in sorted(replacements, key=lambda each: each.after.content is None):
        try:
            _put(scope, each.path, each.after)
        except BaseException as error:
            _take_back(scope, [*made, each], error)
            raise
        made.append(each)


def _put(scope: ToolScope, path: str, wanted: FileState) -> None:
    if wanted.content is None:
        remove_below(scope.root, path)
    else:
        write_below(scope.root, path, wanted.content, scope.key, mode=wanted.mode)


def _take_back(scope: ToolScope, made: Sequence[FileReplacement], because: BaseException) -> None:
    """The last may be made or not: its error may have come behind the act."""
    for each in reversed(made):
        try:
            if standing_at(scope, each.path).sha256 != each.before.sha256:
                _put(scope, each.path, each.before)
        except Exception as error:
            raise OutcomeUnknown(
                f"a part of the change failed ({because}), and {each.path!r} could not be brought back "
                f"to what it was ({error}); look at it before you go on"
            ) from error


MAX_DIFF = 12_000
_MAX_SHOWN = 160


def told_diff(scope: ToolScope, diff: str, most: int = MAX_DIFF) -> str:
    """Cleaned before it is cut: half a secret would pass the redactor."""
    return _cut(scope.clean(diff), most)


def refusal(refused: EditRefused, scope: ToolScope, of: str) -> CallOutcome:
    """The words and, as data, the places that come nearest."""
    shown = [_shown(candidate, scope) for candidate in refused.candidates]
    places = "".join(f"\nline {each['line']}: {each['text']}{_why(each)}" for each in shown)
    return CallOutcome(
        ok=False,
        error=f"{of} was refused, and nothing was changed: {scope.clean(refused.words)}{places}",
        result={"refused": str(refused.reason), "edit": refused.number, "candidates": shown},
    )


def _shown(candidate: MatchCandidate, scope: ToolScope) -> dict[str, Json]:
    text = _cut(scope.clean(candidate.text), _MAX_SHOWN)
    return {"line": candidate.line, "text": text, "differs": candidate.differs}


def _why(shown: dict[str, Json]) -> str:
    return f"  ← {shown['differs']}" if shown["differs"] else ""


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}\n[cut: {len(text)} characters in all]"
