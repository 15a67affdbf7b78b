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
from podium.platform.atomic_write import atomic_write
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


def path_of_argument(scope: ToolScope, argument: str = "path") -> str:
    """The judged path from the root on. Raises `ToolBroke` for one that no operation may act on."""
    scope.relative(argument)
    return path_of_use(scope, next(use for use in scope.call.paths if use.argument == argument))


def path_of_use(scope: ToolScope, use: PathUse) -> str:
    """As `path_of_argument`, for one judged path."""
    path = inside(scope.root, use.real, use.given)
    if path == ".":
        raise ToolBroke(f"{use.given!r} is the root folder; name a path inside it")
    _refuse_unseen(use.given)
    _refuse_owned(path, (*PurePosixPath(path).parts, *PurePosixPath(use.given).parts))
    _refuse_links(scope, use)
    return path


def _refuse_unseen(path: str) -> None:
    for char in path:
        if unicodedata.category(char) in _UNSEEN:
            raise ToolBroke(
                f"{path!r} contains the invisible character U+{ord(char):04X}; remove it"
            )


def _refuse_owned(path: str, parts: Iterable[str]) -> None:
    names = {protected_name(part) for part in parts}
    if GIT_DIR in names:
        raise ToolBroke(f"{path!r} belongs to git; change it only with git commands")
    if STATE_DIR in names:
        raise ToolBroke(
            f"{path!r} belongs to Podium, which stores its record there; do not change it"
        )


def _refuse_links(scope: ToolScope, use: PathUse) -> None:
    """Raise `ToolBroke` for a path through a link: the target was judged, and the link may be meant."""
    if os.path.normpath(scope.root / use.given) != use.real:
        raise ToolBroke(
            f"{use.given!r} goes through a symbolic link; use the real path, relative to the root"
        )


def must_be_file(status: os.stat_result | None, path: str) -> os.stat_result:
    """Raise `ToolBroke` or `NotPlainFile` unless it is a plain file with this one name."""
    if status is None:
        raise ToolBroke(f"{path!r} does not exist; list the folder to see its files")
    check_plain(status, path, single_name=True)
    return status


def refuse_references(value: Json) -> None:
    """Raise `ToolBroke` when a text would put a secret into a file."""
    for text in _texts(value):
        if (reference := REFERENCE.search(text)) is not None:
            raise ToolBroke(
                f"the text contains {reference[0]!r}, and secrets cannot be written to files; let the "
                "program read an environment variable instead"
            )


def _texts(value: Json) -> Iterable[str]:
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            waiting += [*item.keys(), *item.values()]
        elif isinstance(item, list):
            waiting += item


def sha256_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def store_content(folder: Path, content: bytes) -> str:
    """Store the content and give its hash. On return it survives a crash."""
    digest = sha256_of(content)
    target = folder / digest
    if target.exists():
        return digest
    make_private_folder(folder)
    atomic_write(target, content)
    return digest


def stored_content(folder: Path | None, digest: str) -> bytes:
    """The content with this hash. Raises `ToolBroke` when it is not there or was changed."""
    if folder is None:
        raise ToolBroke("earlier contents are not stored here, so nothing can be restored")
    try:
        content = (folder / digest).read_bytes()
    except FileNotFoundError as error:
        raise ToolBroke(f"the content with hash {digest!r} is no longer stored") from error
    if sha256_of(content) != digest:
        raise ToolBroke(
            f"the content stored under hash {digest!r} was changed, so it is not restored"
        )
    return content


_FOLDER = "intents"
_OLD_SECONDS = 90 * 86_400.0
"""After that long nobody takes up a call again."""


def key_digest(scope: ToolScope) -> str:
    """A name for files of this call, the same at every try."""
    return hashlib.sha256(scope.key.encode()).hexdigest()[:32]


def recall(scope: ToolScope) -> dict[str, Json] | None:
    """Load the intent that an earlier try of this call recorded. None: this is the first try."""
    file = _file(scope)
    try:
        stored = json.loads(file.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError:
        stored = None
    fixed = stored.get("fixed") if isinstance(stored, dict) else None
    if not isinstance(fixed, dict) or stored.get("call") != scope.key:
        raise ToolBroke(
            f"{str(file)!r} records what an earlier attempt of this call was about to do, and is not valid; "
            "check the paths of the call, and send a new order for what is still missing"
        )
    return fixed


def fix(scope: ToolScope, fixed: dict[str, Json]) -> dict[str, Json]:
    """Keep what this call is about to do. On return it survives a crash."""
    file = _file(scope)
    make_private_folder(file.parent)
    content = json.dumps({"call": scope.key, "fixed": fixed}).encode()
    atomic_write(file, content, mode=0o666, draft=f"{file.stem}.tmp")
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
    """Keep an earlier content. False when it is not stored: one that holds a secret never is."""
    text = content.decode(errors="replace")
    if scope.undo_folder is None or scope.redact(text) != text:
        return False
    store_content(scope.undo_folder, content)
    return True


def _file(scope: ToolScope) -> Path:
    if scope.undo_folder is None:
        raise ToolBroke(
            f"{scope.call.tool!r} has no folder to record its intent, without which a crash could make it act "
            "twice; configure `undo_folder` of the toolbox"
        )
    return scope.undo_folder / _FOLDER / f"{key_digest(scope)}.json"


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

    The lock lies beside the stored contents, never beside the file: it dies with its process, and readers of
    the folder never see it.
    """
    if scope.undo_folder is None:
        yield  # then nothing can be fixed either, and the call is refused for that
        return
    folder = scope.undo_folder / _TURNS_FOLDER
    make_private_folder(folder)
    with contextlib.ExitStack() as held:
        for name in _locks_of(paths):
            held.enter_context(file_lock(folder / name))
        yield


def _locks_of(paths: Iterable[str]) -> list[str]:
    """Names of their locks. Each once and in one order for all, or two calls could wait for each other."""
    # On file systems that see no case one file has many names; waiting for a stranger costs nothing.
    folded = (path.casefold().encode(errors="backslashreplace") for path in paths)
    return sorted({hashlib.sha256(name).hexdigest()[:2] for name in folded})


@dataclass(frozen=True)
class FileState:
    """Content and permission bits of a path. Content None: no file."""

    content: bytes | None
    mode: int | None = None

    @property
    def sha256(self) -> str | None:
        return None if self.content is None else sha256_of(self.content)


@dataclass(frozen=True)
class FileReplacement:
    """A path with its state before and after. Permission bits stay."""

    path: str
    before: FileState
    after: FileState


def state_at(scope: ToolScope, path: str) -> FileState:
    """The plain file there. Raises `NotPlainFile` for anything else, and for one with a second name."""
    content = find_below(scope.root, path, MAX_BYTES, single_name=True)
    status = status_below(scope.root, path) if content is not None else None
    return FileState(content, stat.S_IMODE(status.st_mode) & 0o777 if status else None)


def replace_all(scope: ToolScope, replacements: Sequence[FileReplacement]) -> None:
    """Make them all, removals last. What was made is taken back when a later one fails.

    Each file changes in one step and is durable. Raises `OutcomeUnknown` when one cannot be taken
    back: then some are made and some are not.
    """
    made: list[FileReplacement] = []
    for replacement in sorted(
        replacements, key=lambda replacement: replacement.after.content is None
    ):
        try:
            _put(scope, replacement.path, replacement.after)
        except BaseException as error:
            _take_back(scope, [*made, replacement], error)
            raise
        made.append(replacement)


def _put(scope: ToolScope, path: str, state: FileState) -> None:
    if state.content is None:
        remove_below(scope.root, path)
    else:
        write_below(scope.root, path, state.content, scope.key, mode=state.mode)


def _take_back(scope: ToolScope, made: Sequence[FileReplacement], because: BaseException) -> None:
    """The last may be made or not: its error may have come behind the act."""
    for replacement in reversed(made):
        try:
            if state_at(scope, replacement.path).sha256 != replacement.before.sha256:
                _put(scope, replacement.path, replacement.before)
        except Exception as error:
            raise OutcomeUnknown(
                f"part of the change failed ({because}), and {replacement.path!r} could not be restored ({error}); check "
                "the file before you continue"
            ) from error


MAX_DIFF = 12_000
_MAX_EXCERPT_CHARACTERS = 160


def clean_diff(scope: ToolScope, diff: str, most: int = MAX_DIFF) -> str:
    """Cleaned before it is cut: half a secret would pass the redactor."""
    return _cut(scope.clean(diff), most)


def refusal(refused: EditRefused, scope: ToolScope, of: str) -> CallOutcome:
    """Describe a refused edit, with the nearest candidates as data."""
    candidates = [_describe_candidate(candidate, scope) for candidate in refused.candidates]
    lines = "".join(
        f"\nline {candidate['line']}: {candidate['text']}{_why(candidate)}"
        for candidate in candidates
    )
    return CallOutcome(
        ok=False,
        error=f"{of} was refused, and nothing was changed: {scope.clean(refused.message)}{lines}",
        result={"refused": str(refused.reason), "edit": refused.number, "candidates": candidates},
    )


def _describe_candidate(candidate: MatchCandidate, scope: ToolScope) -> dict[str, Json]:
    text = _cut(scope.clean(candidate.text), _MAX_EXCERPT_CHARACTERS)
    return {"line": candidate.line, "text": text, "differs": candidate.differs}


def _why(candidate: dict[str, Json]) -> str:
    return f"  ← {candidate['differs']}" if candidate["differs"] else ""


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}\n[cut: {len(text)} characters in all]"
