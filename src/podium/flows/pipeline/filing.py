"""What the supervisor itself puts on the branch: documents, backlog, memory, each in one commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from podium.domain.asking import Reply
from podium.domain.errors import ImportRefused, NeedsHuman, NotPossibleNow
from podium.domain.events import NoteTaken
from podium.domain.gating import Refusal
from podium.domain.model import Noun
from podium.flows.delivery import DeliveryDeps, deliver_approved
from podium.flows.pipeline.attributes import with_union
from podium.flows.pipeline.backlog import with_items
from podium.flows.pipeline.desk import Desk
from podium.flows.pipeline.memory import with_lessons
from podium.flows.pipeline.payloads import Answer
from podium.flows.pipeline.people import AwaitsApproval
from podium.flows.pipeline.trip import BACKLOG, MEMORY

_ATTRIBUTES = ".gitattributes"
APPENDICES = (BACKLOG, MEMORY, _ATTRIBUTES)
"""What the supervisor itself writes beside documents."""


class Filed(Noun):
    """What came back into the user's repository."""

    head: str
    commits: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    alike: tuple[str, ...] = ()
    """Places in test data that look like secrets."""


async def file(
    desk: Desk,
    step: str,
    message: str,
    *,
    written: Mapping[str, str],
    paths: Sequence[str] = (),
    answer: Answer | None = None,
    reply: Reply | None = None,
) -> Filed:
    """Write `written`, commit it with the files at `paths`, and bring the branch back.

    Asked again after a crash it finds its own commit by the trailers and makes no other. Raises `SecretsCommitted`.
    """
    workspace = desk.trip.workspace
    trailers = desk.trailers(step, reply)
    if not await was_made(desk, trailers):
        more = await _appendices(desk, answer, step) if answer is not None else {}
        if written or more:
            texts = {**written, **more}
            await workspace.write({path: desk.kit.redact(text) for path, text in texts.items()})
        if written or more or paths:
            await workspace.commit(message, [*written, *more, *paths], trailers=trailers)
    return await bring_back(desk, step)


async def was_made(desk: Desk, trailers: Mapping[str, str]) -> bool:
    """Whether a commit with these trailers is on the branch already."""
    return await desk.trip.workspace.was_committed(trailers)


async def clean_start(desk: Desk, why: str) -> str:
    """Put the worktree where the last delivery left it, which is past `head` when this very step was killed."""
    start = await desk.trip.workspace.delivered()
    await desk.trip.workspace.reset(start, why)
    return start


async def bring_back(desk: Desk, step: str, *, approved: Sequence[str] = ()) -> Filed:
    """Take whatever is committed through the import gate. Raises `NeedsHuman` when somebody else moved the branch.

    `AwaitsApproval` is raised for guarded files, but for the paths that were `approved` as they are already;
    `ImportRefused` for those that a person rejected.
    """
    trip, kit = desk.trip, desk.kit
    deps = DeliveryDeps(kit.workspaces, kit.toolbox_in, kit.redact)
    try:
        delivery = await deliver_approved(
            deps, trip.workspace, trip.run_id, f"deliver:{step}", approved=approved
        )
    except NotPossibleNow as error:
        raise NeedsHuman(f"{error}; then `podium resume {trip.run_id}`") from error
    if isinstance(delivery, Refusal):
        files = ", ".join(map(str, delivery.call.arguments["files"]))
        if delivery.approval_id:
            what = f"Changes of guarded files wait for a person ({files})"
            raise AwaitsApproval(delivery.approval_id, delivery.deadline, what)
        raise ImportRefused(f"changing {files} was not approved: {delivery.decision.reason}")
    return Filed(
        head=delivery.after,
        commits=delivery.commits,
        paths=delivery.paths,
        alike=delivery.lookalikes,
    )


async def _appendices(desk: Desk, answer: Answer, step: str) -> dict[str, str]:
    """Backlog and memory with what the answer adds to them."""
    workspace, day = desk.trip.workspace, desk.kit.clock.now().date()
    source = f"{desk.trip.name} {step}"
    files: dict[str, str] = {}
    if answer.backlog_items:
        text = await workspace.read(BACKLOG)
        files[BACKLOG] = with_items(text, answer.backlog_items, source=source, day=day)
    if answer.lessons:
        text = await workspace.read(MEMORY)
        remembered = with_lessons(
            text, answer.lessons, source=source, day=day, looks_secret=desk.kit.looks_secret
        )
        files[MEMORY] = remembered.text
        for refused in remembered.refused:
            desk.ctx.note(NoteTaken(text=f"A lesson was not kept: {refused.why}"))
    return await _that_changed(desk, files)


async def _that_changed(desk: Desk, files: dict[str, str]) -> dict[str, str]:
    """Only what is new, with the attributes that let parallel tasks append without conflict."""
    workspace = desk.trip.workspace
    changed = {
        path: text for path, text in files.items() if text != (await workspace.read(path) or "")
    }
    if changed:
        old = await workspace.read(_ATTRIBUTES)
        new = with_union(old, [BACKLOG, MEMORY])
        if new != (old or ""):
            changed[_ATTRIBUTES] = new
    return changed
