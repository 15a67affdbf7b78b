"""Branch of a run for the console: its documents and its diff, read with the project's git."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from podium.app.run_timeline import newest_events
from podium.core.errors import NotPossibleNow, UnknownId
from podium.core.events import BranchDelivered
from podium.core.job import job_of_flow, load
from podium.core.model import FrozenModel, Json
from podium.core.work import Run
from podium.core.workspaces import WorkspaceRecord

if TYPE_CHECKING:
    from podium.app.app import Podium


MAX_DIFF_BYTES = 400_000
MAX_DOCUMENT_BYTES = 200_000
MAX_DELIVERIES = 20
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class Document(FrozenModel):
    """A document that a role wrote."""

    path: str
    role: str = ""
    verdict: str = ""
    commit: str = ""
    """The commit that has it."""


class Branch(FrozenModel):
    """Branch of a run. Empty fields are not known."""

    repository: str = ""
    name: str = ""
    base: str = ""
    tip: str = ""
    """The last commit that was taken over."""
    url: str = ""
    file: str = ""
    """The pull request, at the forge or beside the record."""
    documents: tuple[Document, ...] = ()
    """The newest last."""


class BranchWork(FrozenModel):
    """A job's knowledge of a branch that its run works on."""

    documents: tuple[Document, ...] = ()
    """The newest last."""
    tip: str = ""
    """The last commit that was taken over."""


class Excerpt(FrozenModel):
    """The beginning of something that may be long."""

    text: str
    cut: bool = False


async def branch_of(podium: Podium, run: Run) -> Branch:
    """Branch of a run according to its record, without asking git."""
    kind = job_of_flow(run.flow)
    work: BranchWork = (
        await load(kind.branch)(podium, run) if kind and kind.branch else BranchWork()
    )
    events = await newest_events(
        await podium.store(), run.id, ("branch_delivered",), most=MAX_DELIVERIES
    )
    job: Mapping[str, Json] = run.input if isinstance(run.input, Mapping) else {}
    result: Mapping[str, Json] = run.result if isinstance(run.result, Mapping) else {}
    delivered = next(
        (e.body for e in reversed(events) if isinstance(e.body, BranchDelivered)), None
    )
    mine = await _workspaces(podium, run)
    name = delivered.branch if delivered else str(result.get("branch") or "")
    return Branch(
        repository=str(job.get("repository") or (mine[-1].repository if mine else "")),
        name=name or (mine[-1].branch.removeprefix("refs/heads/") if mine else ""),
        base=str(job.get("base") or (mine[-1].base if mine else "")),
        tip=delivered.commit if delivered else work.tip,
        url=delivered.url if delivered else "",
        file=delivered.file if delivered else "",
        documents=work.documents,
    )


async def branch_name_of(podium: Podium, run: Run) -> str:
    """The branch that a run works on, by its short name. Empty: it has none, or none any more."""
    if isinstance(run.result, Mapping) and (named := run.result.get("branch")):
        return str(named)
    mine = await _workspaces(podium, run)
    return mine[-1].branch.removeprefix("refs/heads/") if mine else ""


async def document_of(podium: Podium, branch: Branch, path: str) -> Excerpt:
    """A document of the branch, as its role left it. Raises `UnknownId` for any other file."""
    document = next((document for document in branch.documents if document.path == path), None)
    if document is None:
        raise UnknownId("document", path)
    return await _read(
        podium, branch, "cat-file", "blob", f"{_commit(document.commit)}:{path}",
        most=MAX_DOCUMENT_BYTES,
    )  # fmt: skip


async def diff_of(podium: Podium, branch: Branch) -> Excerpt:
    """Diff of the branch from its merge base. Empty while there is nothing."""
    if not branch.tip:
        return Excerpt(text="")
    base = branch.base if _COMMIT.fullmatch(branch.base) else f"refs/heads/{branch.base}"
    return await _read(
        podium, branch, "diff", "--no-color", "--no-ext-diff", "--no-textconv", "--find-renames",
        "--src-prefix=a/", "--dst-prefix=b/", f"{base}...{_commit(branch.tip)}", "--",
        most=MAX_DIFF_BYTES,
    )  # fmt: skip


async def _read(podium: Podium, branch: Branch, *arguments: str, most: int) -> Excerpt:
    if not branch.repository:
        return Excerpt(text="")
    ended = await podium.repository_git.run(
        "-C", branch.repository, *arguments, output_bytes=most, cut=True
    )
    text = ended.stdout.decode(errors="replace")
    redacted = await asyncio.to_thread(podium.redactor.text, text)
    return Excerpt(text=redacted, cut=bool(ended.stdout_dropped_bytes))


async def _workspaces(podium: Podium, run: Run) -> list[WorkspaceRecord]:
    existing = await asyncio.to_thread(podium.workspaces.existing)
    return [record for record in existing if record.run_id == run.id]


def _commit(written: str) -> str:
    """The id of a commit. Raises `NotPossibleNow` for what git could take for something else."""
    if not _COMMIT.fullmatch(written):
        raise NotPossibleNow(f"{written[:80]!r} is not a commit; check the branch with git")
    return written
