"""Names of files around the inbox: which may come in, what a claimed one is called, and an answer."""

from __future__ import annotations

import hashlib
import re

from podium.domain.errors import BadInput
from podium.domain.ids import tail_of
from podium.domain.orders import ORDER_ID, Claim

_ENDINGS = (".yaml", ".yml")
_ORDER_FILE = re.compile(r"\w[\w .,()+@=-]*\.ya?ml")
_UNFINISHED = re.compile(
    r"(\.(tmp|temp|part|partial|swp|swo|swx|bak|crdownload)|~)\Z", re.IGNORECASE
)
"""How programs end the name of a file that they are about to rename."""
_DRAFT = re.compile(r"(\.|^)(tmp|temp|part|partial|swp|bak)\.ya?ml\Z", re.IGNORECASE)
_PARTS = re.compile(r"(?P<run>[A-Za-z0-9_]{1,64})--(?P<worker>[A-Za-z0-9_.-]{1,60})--(?P<file>.+)")
_RUN_ID = re.compile(r"[A-Za-z0-9_]{1,64}")
_LONGEST_FILE_BYTES = 120
"""With run and worker in front the name must still be one: 255 bytes are what file systems take."""
ACK_ENDING = ".ack.json"


def may_hold_order(name: str) -> bool:
    """Whether a name says that this is an order: YAML, and not hidden."""
    return name.endswith(_ENDINGS) and not name.startswith(".")


def is_nobodys_order(name: str) -> bool:
    """Whether a name says that nobody means this file to be done: hidden, or on its way to another name."""
    return name.startswith((".", "#")) or _UNFINISHED.search(name) is not None


def why_not_claimed(name: str) -> str:
    """What is wrong with the name of an order's file, in words; nothing if it will do."""
    if not name.endswith(_ENDINGS):
        return "orders are YAML; give it a name that ends in .yaml"
    if len(name.encode(errors="replace")) > _LONGEST_FILE_BYTES:
        return f"its name is longer than {_LONGEST_FILE_BYTES} bytes; give it a shorter one"
    if _DRAFT.search(name):
        return "by its name it is a draft; rename it when it is complete"
    if not _ORDER_FILE.fullmatch(name):
        return "its name has characters that do not belong there; use letters, digits, `-` and `_`"
    return ""


def claim_of(file: str, run_id: str, worker: str) -> Claim:
    """The claim that this run and worker would have on this file."""
    if not _RUN_ID.fullmatch(run_id):
        raise BadInput(f"{run_id[:80]!r} is no id of a run; use letters, digits and `_`")
    # `--` separates, so a worker's name must not hold it.
    clean = re.sub(r"-{2,}", "-", re.sub(r"[^A-Za-z0-9_.-]", "-", worker))[:60].strip("-")
    clean = clean or "worker"
    return Claim(name=f"{run_id}--{clean}--{file}", file=file, run_id=run_id, worker=clean)


def claim_named(name: str) -> Claim | None:
    """The claim that a file of this name is. None: it is none of ours."""
    found = _PARTS.fullmatch(name)
    if found is None or why_not_claimed(found["file"]):
        return None
    return claim_of(found["file"], found["run"], found["worker"])


def shelved_name(claim: Claim) -> str:
    """What the file is called when it was put away: its own name, and its run's so that none hides another."""
    stem, dot, ending = claim.file.rpartition(".")
    return f"{stem}.{tail_of(claim.run_id)}{dot}{ending}"


def ack_name(wo_id: str) -> str:
    """What the answer to an order is called. What cannot be a name is cleaned, and told apart by its digest."""
    if ORDER_ID.fullmatch(wo_id):
        return f"{wo_id}{ACK_ENDING}"
    digest = hashlib.sha256(wo_id.encode(errors="backslashreplace")).hexdigest()[:8]
    stem = re.sub(r"\.ya?ml\Z", "", wo_id)
    clean = re.sub(r"[^A-Za-z0-9_-]+", "-", stem)[:80].strip("-_")
    return f"{clean or 'order'}-{digest}{ACK_ENDING}"
