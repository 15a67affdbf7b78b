"""The database, the key of the receipts, and what is kept up beside them."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from podium.app.app import Podium
from podium.app.checkup.check import CheckFinding, bad, good, weak
from podium.app.databases import Databases
from podium.app.dry_run import scratch_store
from podium.app.receipts import verify_receipts
from podium.config.project_identity import key_dirs_left_behind
from podium.core.errors import PodiumError
from podium.core.events import Event
from podium.platform import is_wide
from podium.ports import EventQuery, RunQuery, StoreView
from podium.render.text import counted
from podium.store import SqlStore, TraceWriter, quick_check

if TYPE_CHECKING:
    from podium.store.postgres_store import PostgresStore

LITTLE_SPACE_BYTES = 500_000_000
TOO_LITTLE_SPACE_BYTES = 20_000_000
RUNS_LOOKED_AT = 50
"""The newest runs; older ones were looked at when they were new."""


async def check_database(podium: Podium) -> CheckFinding:
    """The project's own file is opened and looked through; without one, a fresh one is tried."""
    if podium.database_url:
        return await _check_server(podium)
    path = podium.database
    try:
        if loss := podium.record_loss:
            return bad("database", f"{path}: {loss.problem}", loss.remedy)
        if not path.exists():
            return await _check_fresh(podium)
        await podium.store()
        verdict = await asyncio.to_thread(quick_check, path)
    except PodiumError as error:
        return bad("database", str(error), "fix the file as described, or move it away")
    if verdict != "ok":
        return bad(
            "database",
            f"{path}: {verdict}",
            "restore it from a backup, or move it away to start with an empty record",
        )
    return good("database", f"{path} is intact ({path.stat().st_size // 1000} kB)")


async def _check_server(podium: Podium) -> CheckFinding:
    """Open it as any command would; that it answers and is of this version is all that is asked here."""
    try:
        store = await podium.store()
        runs = await store.read(lambda view: view.runs(RunQuery(limit=1)))
    except PodiumError as error:
        return bad("database", str(error), "fix it as described, or unset PODIUM_DATABASE_URL")
    name = Databases(podium).in_use_name
    return good("database", f"{name} answers; {'there are runs' if runs else 'no runs yet'}")


async def _check_fresh(podium: Podium) -> CheckFinding:
    async with scratch_store(podium):
        return good("database", "none yet; a new one can be created")


async def check_space(podium: Podium) -> CheckFinding:
    folder = _nearest(podium.folders.state)
    free = shutil.disk_usage(folder).free
    says = f"{free // 1_000_000} MB free in {folder}"
    if free < TOO_LITTLE_SPACE_BYTES:
        return bad("space", says, "free disk space: nothing can be recorded on a full disk")
    if free < LITTLE_SPACE_BYTES:
        return weak("space", says, "free disk space before long runs")
    return good("space", says)


async def check_folder(podium: Podium) -> CheckFinding:
    """Check by trying that the project's folder, which holds the record, is writable."""
    state = podium.folders.state
    target = state if state.is_dir() else podium.folders.project
    for folder in (state, podium.folders.user_state):
        if is_wide(folder):
            return weak(
                "folder", f"{folder} is accessible to other users", f"run `chmod 700 {folder}`"
            )
    try:
        with tempfile.TemporaryFile(dir=target):
            return good("folder", f"{target} is writable")
    except OSError as error:
        says = f"{target} is not writable: {error.strerror}"
        return bad("folder", says, "give yourself write permission (ls -ld, chmod, chown)")


async def check_chains(podium: Podium) -> CheckFinding:
    """Every receipt that is there is proved again."""
    if podium.record_loss:
        return weak("chains", "receipts are lost with the record", "see database above")
    if not podium.has_record or not podium.receipt_key.exists():
        return good("chains", "nothing to verify yet")
    verdict = await verify_receipts(await podium.store(), await podium.verifier())
    if verdict.sound:
        return good("chains", f"{counted(verdict.receipts, 'receipt')} verified")
    runs = ", ".join(sorted({problem.run_id for problem in verdict.faults})[:3])
    return weak("chains", f"not verified: {runs}", "see why with `podium receipts verify`")


async def check_receipt_key(podium: Podium) -> CheckFinding:
    """The key must be readable and whole, or its folder such that one can be made."""
    key = podium.receipt_key
    if not key.exists() and await _has_receipts(podium):
        return bad(
            "receipts",
            f"receipts exist, but their key {key} is missing",
            "restore it from a backup or from the previous location of the project; without it no receipt can be verified",
        )
    if not key.exists():
        folder = _nearest(podium.key_dir)
        if not os.access(folder, os.W_OK | os.X_OK):
            says = f"{podium.key_dir} cannot be created: {folder} is not writable"
            mend = f"give yourself write permission on {folder}, or set PODIUM_HOME to a folder you own"
            return bad("receipts", says, mend)
        return good("receipts", f"no key yet; the first receipt creates one in {key.parent.parent}")
    try:
        async with scratch_store(podium, podium.key_dir) as store:
            await asyncio.to_thread(lambda: store.sealer)
    except (PodiumError, OSError) as error:
        return bad("receipts", str(error), "restore the key: without it no receipt can be verified")
    return good("receipts", f"key at {key}")


async def check_traces(podium: Podium) -> CheckFinding:
    """Traces that some process could not write are brought up to date, or it is said why not."""
    if not podium.has_record or podium.record_loss:
        return good("traces", "none yet")
    folder = podium.folders.state / "runs"
    store = await podium.store()
    try:
        behind = await store.read(lambda view: _catch_up(TraceWriter(folder), view))
    except OSError as error:
        mend = f"give yourself write permission on {folder}, or free space there; the journal has every event"
        return weak("traces", str(error), mend)
    if behind:
        return good("traces", f"added the missing events to {counted(behind, 'trace')}")
    return good("traces", "complete")


def _catch_up(writer: TraceWriter, view: StoreView) -> int:
    """Write the missing lines of traces and count those that were behind. Raises `OSError` for the first that cannot be written."""
    behind = 0
    for run in view.runs(RunQuery(limit=RUNS_LOOKED_AT)):
        try:
            behind += writer.catch_up(run.id, partial(_events, view, run.id)) > 0
        except OSError as error:
            raise OSError(f"trace of run {run.id} not written: {error}") from error
    return behind


def _events(view: StoreView, run_id: str, after_seq: int) -> list[Event]:
    return view.events(EventQuery(run_id=run_id, after_seq=after_seq))


async def check_heads(podium: Podium) -> CheckFinding:
    """Check that the end of every chain is anchored: otherwise it could be cut off unnoticed."""
    if podium.record_loss:
        return good("heads", f"stored in {podium.key_dir / 'heads'}; they show what is lost")
    if left := key_dirs_left_behind(podium.folders):
        says = f"{left[0]} has chain heads of an earlier record of this folder, which is missing"
        mend = f"restore {podium.folders.state} from a backup; if you deleted it, remove {left[0]}"
        return weak("heads", says, mend)
    if not podium.has_record:
        return good("heads", "none yet")
    store = await podium.store()
    alone = not podium.database_url
    unanchored = await store.read(lambda view: _unanchored(store, view, alone=alone))
    if unanchored:
        mend = f"give yourself write permission on {podium.key_dir}; the next receipt of a run anchors it again"
        others = "" if alone else "; ignore runs that another host has continued"
        return weak("heads", f"not anchored to the end: {', '.join(unanchored)}", mend + others)
    whose = "" if alone else " that was sealed on this host"
    return good("heads", f"every chain{whose} is anchored to its end")


def _unanchored(store: SqlStore | PostgresStore, view: StoreView, *, alone: bool) -> list[str]:
    """Not `alone`, runs without a head here are those that other hosts worked on."""
    run_ids = []
    for run in view.runs(RunQuery(limit=RUNS_LOOKED_AT)):
        last, head = view.last_receipt(run.id), store.anchors.head(run.id)
        missing = alone if head is None else last is not None and head.number < last.number
        if last is not None and missing:
            run_ids.append(run.id)
    return run_ids


async def _has_receipts(podium: Podium) -> bool:
    if podium.has_heads:
        return True
    if not podium.has_record or podium.record_loss:
        return False
    store = await podium.store()
    return bool(await store.read(lambda view: view.receipts()))


def _nearest(folder: Path) -> Path:
    """The folder, or the nearest one above it that is there."""
    while not folder.exists():
        folder = folder.parent
    return folder
