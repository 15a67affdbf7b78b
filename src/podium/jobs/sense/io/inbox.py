"""Inbox of folders: orders come in as files, every step is one rename; their names, and their bytes as an order."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from podium.core.errors import BadInput, NotPossibleNow
from podium.core.ids import tail_of
from podium.core.model import Json, json_of
from podium.jobs.sense.io.content import Redact, redacted
from podium.jobs.sense.io.plain_yaml import NotPlain, parse_plain
from podium.jobs.sense.io.safe_files import (
    explain_errors,
    opened_folder,
    read_plain,
    replace_file,
)
from podium.jobs.sense.orders.work_order import (
    ORDER_ID,
    Ack,
    Claim,
    OpenedOrder,
    Operation,
    WorkOrder,
)
from podium.jobs.sense.ports import Shelf
from podium.platform.atomic_write import sync
from podium.platform.safe_open import why_not_plain
from podium.ports.engine import Clock

_ENDINGS = (".yaml", ".yml")
_ORDER_FILE = re.compile(r"\w[\w .,()+@=-]*\.ya?ml")
_UNFINISHED = re.compile(
    r"(\.(tmp|temp|part|partial|swp|swo|swx|bak|crdownload)|~)\Z", re.IGNORECASE
)
"""Endings that programs give a file before they rename it."""
_DRAFT = re.compile(r"(\.|^)(tmp|temp|part|partial|swp|bak)\.ya?ml\Z", re.IGNORECASE)
_PARTS = re.compile(r"(?P<run>[A-Za-z0-9_]{1,64})--(?P<worker>[A-Za-z0-9_.-]{1,60})--(?P<file>.+)")
_RUN_ID = re.compile(r"[A-Za-z0-9_]{1,64}")
_MAX_FILE_BYTES = 120
"""With run and worker in front the name must still be one: 255 bytes are what file systems take."""
ACK_ENDING = ".ack.json"


def may_hold_order(name: str) -> bool:
    """True if the name is that of an order: YAML, and not hidden."""
    return name.endswith(_ENDINGS) and not name.startswith(".")


def is_nobodys_order(name: str) -> bool:
    """True if the name is that of a file nobody wants performed: hidden, or about to be renamed."""
    return name.startswith((".", "#")) or _UNFINISHED.search(name) is not None


def why_not_claimed(name: str) -> str:
    """Return the problem with the name of an order's file; empty if there is none."""
    if not name.endswith(_ENDINGS):
        return "work orders are YAML files; use a name that ends in .yaml"
    if len(name.encode(errors="replace")) > _MAX_FILE_BYTES:
        return f"the name is longer than {_MAX_FILE_BYTES} bytes; use a shorter one"
    if _DRAFT.search(name):
        return "the name marks it as a draft; rename it when it is complete"
    if not _ORDER_FILE.fullmatch(name):
        return "the name contains unsupported characters; use letters, digits, `-` and `_`"
    return ""


def claim_of(file: str, run_id: str, worker: str) -> Claim:
    """The claim that this run and worker would have on this file."""
    if not _RUN_ID.fullmatch(run_id):
        raise BadInput(f"{run_id[:80]!r} is not a run id; use letters, digits and `_`")
    # `--` separates, so a worker's name must not hold it.
    clean = re.sub(r"-{2,}", "-", re.sub(r"[^A-Za-z0-9_.-]", "-", worker))[:60].strip("-")
    clean = clean or "worker"
    return Claim(name=f"{run_id}--{clean}--{file}", file=file, run_id=run_id, worker=clean)


def claim_named(name: str) -> Claim | None:
    """The claim that a file of this name is. None: it is none of ours."""
    match = _PARTS.fullmatch(name)
    if match is None or why_not_claimed(match["file"]):
        return None
    return claim_of(match["file"], match["run"], match["worker"])


def shelved_name(claim: Claim) -> str:
    """Return the name of a file that is put away: its own name with its run's, so that none hides another."""
    stem, dot, ending = claim.file.rpartition(".")
    return f"{stem}.{tail_of(claim.run_id)}{dot}{ending}"


def ack_name(wo_id: str) -> str:
    """Return the file name of the answer to an order. An id that cannot be a file name is cleaned and gets a digest."""
    if ORDER_ID.fullmatch(wo_id):
        return f"{wo_id}{ACK_ENDING}"
    digest = hashlib.sha256(wo_id.encode(errors="backslashreplace")).hexdigest()[:8]
    stem = re.sub(r"\.ya?ml\Z", "", wo_id)
    clean = re.sub(r"[^A-Za-z0-9_-]+", "-", stem)[:80].strip("-_")
    return f"{clean or 'order'}-{digest}{ACK_ENDING}"


ORDER_LIMIT_BYTES = 1_000_000
_MAX_PROBLEMS = 10
_MAX_PROBLEM_LENGTH = 300
_MAX_NAME = 40


def read_order(content: bytes) -> OpenedOrder:
    """Parse an order. Every problem is listed in `fault`, each with its key."""
    if len(content) > ORDER_LIMIT_BYTES:
        return _faulty(f"the file is larger than {ORDER_LIMIT_BYTES // 1000} kB; orders are small")
    try:
        data = parse_plain(content)
    except NotPlain as error:
        return _faulty(str(error))
    if not isinstance(data, dict):
        return _faulty("the file must be a mapping with `id`, `title` and `ops` or `tasks`")
    return _validated(data)


def is_half_written(content: bytes) -> bool:
    """True if the file may still be being written: it is empty, or holds no mapping."""
    if len(content) > ORDER_LIMIT_BYTES:
        return False
    try:
        return not isinstance(parse_plain(content), dict)
    except NotPlain:
        return True


def _validated(data: dict[str, Json]) -> OpenedOrder:
    try:
        order = WorkOrder.model_validate(data)
    except ValidationError as error:
        faulty = _faulty(*_sentences(error.errors(include_url=False), data))
        return faulty.model_copy(update={"order": _addressed(data)})
    return OpenedOrder(order=order)


def _addressed(data: dict[str, Json]) -> WorkOrder | None:
    """Reduce an invalid order to what an answer needs: its id, and its title if it has one."""
    wo_id, title = data.get("id"), data.get("title")
    for fields in ({"id": wo_id, "title": title}, {"id": wo_id, "title": wo_id}):
        try:
            return WorkOrder.model_validate(fields)
        except ValidationError:
            continue
    return None


def _faulty(*sentences: str) -> OpenedOrder:
    listed = list(dict.fromkeys(sentences))
    if len(listed) > _MAX_PROBLEMS:
        more = len(listed) - _MAX_PROBLEMS
        listed = [*listed[:_MAX_PROBLEMS], f"{more} more"]
    return OpenedOrder(fault="; ".join(sentence[:_MAX_PROBLEM_LENGTH] for sentence in listed))


def _sentences(errors: Sequence[ErrorDetails], data: Json) -> list[str]:
    return [f"{_key(error, data)}: {_error_text(error)}" for error in errors]


def _key(error: ErrorDetails, data: Json) -> str:
    """Return the location of an error in the file. Validators of a union add names to the path that the file does not have."""
    way: list[str] = []
    for part in error["loc"]:
        if isinstance(data, dict):
            data = data.get(str(part))
        elif isinstance(data, list) and isinstance(part, int):
            data = data[part]
        else:
            continue
        way.append(str(part))
    return ".".join(way)


def _error_text(error: ErrorDetails) -> str:
    match error["type"]:
        case "extra_forbidden":
            return f"unknown key{_meant(error['loc'])}"
        case "missing":
            return "is missing"
        case "string_type":
            return "must be text; put quotes around it"
        case "tuple_type":
            return "must be a list"
        case "literal_error":
            value = str(error["input"])[:_MAX_NAME]
            return f"unknown value {value!r}; {_message(error)}"
        case "value_error":
            return error["msg"].removeprefix("Value error, ")
        case _:
            return _message(error)


def _message(error: ErrorDetails) -> str:
    return error["msg"][:1].lower() + error["msg"][1:]


def _meant(way: tuple[str | int, ...]) -> str:
    keys = list(Operation.model_fields if way[0] == "ops" else WorkOrder.model_fields)
    close = difflib.get_close_matches(str(way[-1])[:80], keys, n=1)
    return f"; did you mean `{close[0]}`?" if close else f"; known keys: {', '.join(keys)}"


_SETTLED_SECONDS = 2.0
"""A file that makes no sense and was changed this recently may still be written in place."""
_ACK_LIMIT_BYTES = 5_000_000
REASON_ENDING = ".reason.txt"


@dataclass(frozen=True)
class InboxFolders:
    """Folders of an inbox, relative to the root."""

    inbox: str
    claimed: str
    done: str
    parked: str
    acks: str


class FolderInbox:
    """The inbox of one root. Raises `NotPossibleNow` where one of its folders cannot be used."""

    def __init__(self, root: Path, folders: InboxFolders, *, clock: Clock, redact: Redact) -> None:
        self._root = root
        self._at = folders
        self._clock = clock
        self._redact = redact
        self._passed_over: tuple[str, ...] = ()

    @property
    def passed_over(self) -> tuple[str, ...]:
        """Files that the last look at the inbox left where they are, and why, a sentence each."""
        return self._passed_over

    def waiting(self) -> Sequence[str]:
        names: list[tuple[int, str]] = []
        left: list[str] = []
        with suppress(FileNotFoundError), self._folder(self._at.inbox) as inbox:
            for name, stat in _order_files(inbox):
                if why := self._why_left(inbox, name, stat):
                    left.append(f"{name!r}: {why}")
                else:
                    names.append((stat.st_mtime_ns, name))
        self._passed_over = tuple(sorted(left))
        return [name for _, name in sorted(names)]

    def claim(self, file: str, *, run_id: str, worker: str) -> Claim | None:
        claim = claim_of(file, run_id, worker)
        try:
            with self._folder(self._at.inbox) as inbox:
                return claim if self._taken(inbox, claim) else None
        except FileNotFoundError:
            return None

    def claims(self) -> Sequence[Claim]:
        claims: list[Claim | None] = []
        with suppress(FileNotFoundError), self._folder(self._at.claimed) as claimed:
            claims = [claim_named(name) for name in os.listdir(claimed)]  # noqa: PTH208 - a handle, not a path
        return sorted((claim for claim in claims if claim), key=lambda claim: claim.name)

    def open(self, claim: Claim) -> OpenedOrder:
        name = _checked(claim).name
        try:
            with self._folder(self._at.claimed) as claimed:
                content = read_plain(claimed, name, ORDER_LIMIT_BYTES)
        except FileNotFoundError:
            return OpenedOrder(fault=f"{claim.file!r} is no longer among the claimed files")
        except NotPossibleNow as error:
            return OpenedOrder(fault=str(error))
        return read_order(content)

    def put_away(self, claim: Claim, shelf: Shelf, why: str = "") -> str:
        folder = self._at.done if shelf == "done" else self._at.parked
        checked = _checked(claim)
        name, source = shelved_name(checked), checked.name
        with (
            self._folder(self._at.claimed, make=True) as claimed,
            self._folder(folder, make=True) as target,
        ):
            if _is_there(claimed, source):
                if why:
                    # Before the file: one that is parked never lies there without its reason.
                    reason = f"{self._redact(why)}\n".encode(errors="replace")
                    replace_file(target, name + REASON_ENDING, reason)
                # Another worker may find it left behind too, and be faster.
                with explain_errors(f"{folder}/{name}"), suppress(FileNotFoundError):
                    os.rename(source, name, src_dir_fd=claimed, dst_dir_fd=target)
                    sync(target)
        return f"{folder}/{name}"

    def acknowledge(self, ack: Ack) -> str:
        name = ack_name(ack.wo_id)
        document = redacted(json.loads(json_of(ack)), self._redact)
        if not ack.worker:
            del document["worker"]
        content = json.dumps({**document, "wo_id": ack.wo_id}, indent=2) + "\n"
        with self._folder(self._at.acks, make=True) as acks:
            replace_file(acks, name, content.encode())
        return f"{self._at.acks}/{name}"

    def answered(self, wo_id: str) -> Ack | None:
        try:
            with self._folder(self._at.acks) as acks:
                content = read_plain(acks, ack_name(wo_id), _ACK_LIMIT_BYTES)
            ack = Ack.model_validate_json(content)
        except (FileNotFoundError, ValidationError):
            return None
        return ack if ack.wo_id == wo_id else None

    def _taken(self, inbox: int, claim: Claim) -> bool:
        """Claim the file. Raises `FileNotFoundError` if another worker was faster."""
        if not may_hold_order(claim.file) or why_not_claimed(claim.file):
            return False
        stat = os.stat(claim.file, dir_fd=inbox, follow_symlinks=False)
        if self._why_left(inbox, claim.file, stat):
            return False
        with self._folder(self._at.claimed, make=True) as claimed:
            if _is_there(claimed, claim.name):
                raise BadInput(f"run {claim.run_id} has already claimed {claim.file!r}")
            with explain_errors(f"{self._at.claimed}/{claim.name}"):
                os.rename(claim.file, claim.name, src_dir_fd=inbox, dst_dir_fd=claimed)
                sync(claimed)
        return True

    def _why_left(self, inbox: int, name: str, stat: os.stat_result) -> str:
        """Return the reason why this file is not taken now; empty if it is."""
        if problem := why_not_claimed(name) or why_not_plain(stat, single_name=True):
            return problem
        age = self._clock.now().timestamp() - stat.st_mtime
        if abs(age) >= _SETTLED_SECONDS:
            return ""
        try:
            half = is_half_written(read_plain(inbox, name, ORDER_LIMIT_BYTES))
        except FileNotFoundError:
            return "no longer there"
        except NotPossibleNow as error:
            return str(error)
        return "still being written" if half else ""

    def _folder(self, path: str, *, make: bool = False) -> AbstractContextManager[int]:
        return opened_folder(self._root, path, make=make)


def _order_files(inbox: int) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(inbox) as entries:
        for entry in entries:
            if may_hold_order(entry.name) or _is_meant(entry):
                try:
                    yield entry.name, entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue  # another worker took it meanwhile


def _is_meant(entry: os.DirEntry[str]) -> bool:
    """True if somebody may take this file for an order, so that the reason for leaving it must be given."""
    return not is_nobodys_order(entry.name) and not entry.is_dir(follow_symlinks=False)


def _checked(claim: Claim) -> Claim:
    """The claim as its name tells it. Claims come back from records, and a name leads to a file."""
    parsed = claim_named(claim.name)
    if parsed is None:
        raise BadInput(f"{claim.name[:200]!r} is not the name of a claimed file")
    return parsed


def _is_there(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
