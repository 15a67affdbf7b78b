"""State of a pipeline run, the context of a stage, and the question to a person when neither can continue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from pydantic import Field

from podium.app.checks import Check, CheckResult, Detection, all_passed
from podium.core.decisions import Usage
from podium.core.errors import NeedsHuman
from podium.core.events import NoteTaken
from podium.core.forge import RemoteBase
from podium.core.ids import short_id
from podium.core.model import FrozenModel, Json, UtcDatetime
from podium.core.turns import Reply
from podium.core.workspaces import WorktreeSnapshot
from podium.jobs.pipeline.deps import PipelineJob, PipelineKit
from podium.jobs.pipeline.findings import Finding
from podium.jobs.pipeline.payloads import SkillWish
from podium.jobs.pipeline.plain_text import slug_of
from podium.jobs.pipeline.spec import Stage
from podium.ports import FlowContext, StepContext, Workspace

MEMORY = "AGENT_MEMORY.md"
BACKLOG = "docs/dev_docs/backlog.md"
SENT_BACK = "SENT_BACK"
"""What the supervisor says of an answer whose deliverables are not there."""
RED = "RED"
"""What it says when the checks fail."""


class Found(Detection):
    """What there was before any agent came."""

    ignored: tuple[str, ...] = ()
    """What the set-up left that git ignores."""
    conventions: dict[str, str] = Field(default_factory=dict)
    """Path → text of what the repository says to agents and contributors."""


class OfferedSkill(FrozenModel):
    """A skill that waits for a person's word."""

    name: str
    path: str
    text: str
    approval_id: str = ""
    deadline: UtcDatetime | None = None


class Withheld(FrozenModel):
    """What an answer adds to backlog and memory, for the next one to bring: its own commits were taken back."""

    backlog: tuple[str, ...] = ()
    lessons: tuple[str, ...] = ()


class Settled(FrozenModel):
    """What the supervisor made of an answer."""

    verdict: str
    words: str = ""
    """What the next one is told: the feedback, the problems, the output of checks."""
    problems: tuple[str, ...] = ()
    document: str = ""
    documents: tuple[str, ...] = ()
    """All that were written on the way and are archived at the end."""
    head: str
    """Where the branch is in the user's repository now."""
    commits: tuple[str, ...] = ()
    discarded: tuple[str, ...] = ()
    backlog: tuple[str, ...] = ()
    lessons: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    """Paths that came back with it."""
    feedback: Json = None
    """What the answer says beside its result, for somebody to decide about."""
    alike: tuple[str, ...] = ()
    """Places in test data that look like secrets."""
    draft: WorktreeSnapshot | None = None
    withheld: Withheld = Withheld()
    skill: SkillWish | None = None
    disputed: tuple[str, ...] = ()
    """Checks that the answer calls wrong, with its reasons."""
    rules: int = 0
    """Which rules held when it was recorded. Runs that older code began go on by theirs: 1 asks a person about disputed checks and
    drops remarks that are settled."""
    gives_up: bool = False
    """The answer reports a failure, and nothing else is wrong with it."""
    no_plan: str = ""
    """Why there is nothing to plan, in the words of who was to plan it: a person decides."""


class Told(FrozenModel):
    """A stage that was passed through, for the report."""

    stage: str
    phase: str
    role: str
    round: int
    verdict: str
    agent: str = ""
    document: str = ""
    commit: str = ""
    seconds: float = 0.0
    usd: float = 0.0


class Remark(FrozenModel):
    """What an agent said beside its result, and where."""

    stage: str
    role: str
    round: int
    verdict: str
    document: str = ""
    text: str
    rules: int = 0
    """Those of the answer: see `Settled`."""


@dataclass
class Trip:
    """The state of one run between two steps."""

    job: PipelineJob
    run_id: str
    workspace: Workspace
    head: str
    """Last commit that came back into the user's repository."""
    base: str
    """Commit of the base that the branch contains."""
    visits: Counter[str] = field(default_factory=Counter)
    taken: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How often a verdict was given since a person last looked."""
    found: dict[tuple[str, str], tuple[Finding, ...]] = field(default_factory=dict)
    reports: list[str] = field(default_factory=list)
    plan: str = ""
    is_stale: bool = False
    """Something was changed since the checks ran."""
    work_from: str = ""
    """Where the branch was when the work that is going on began."""
    sent_back: str = ""
    """The stage whose last answer was sent back."""
    verification: str = ""
    """The developer's own report on what was checked off."""
    review: str = ""
    reviews: dict[str, str] = field(default_factory=dict)
    """Stage → its last review."""
    documents: list[str] = field(default_factory=list)
    feedback: str = ""
    open: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    """Stage and verdict → what was found under it, until the stage is left with a verdict that leads on."""
    withheld: Withheld = field(default_factory=Withheld)
    remarks: list[Remark] = field(default_factory=list)
    """Those that nobody has decided about yet."""
    decided: set[str] = field(default_factory=set)
    """Keys of the points of remarks that were decided about."""
    is_developed: bool = False
    """A stage that changes code was left with its checks passed."""
    producer: str = ""
    evidence: tuple[CheckResult, ...] = ()
    evidence_path: str = ""
    on_base: dict[tuple[str, str], CheckResult] = field(default_factory=dict)
    """Commit of the base and command → how a check that was red with the work ended there."""
    added_checks: tuple[Check, ...] = ()
    """Checks of a project that had none, found in what the run itself has added."""
    disputed: list[str] = field(default_factory=list)
    """Checks that whoever worked called wrong, with their reasons."""
    untested: bool = False
    """There was no check to run on the work."""
    untested_reason: str = ""
    """Why it may be delivered all the same. Empty: nobody has said that yet."""
    remote_base: RemoteBase = field(default_factory=RemoteBase)
    """The remote's base branch when it was last looked at."""
    moved_bases: int = 0
    """How often it had moved by the time the branch was to go out, since a person last looked."""
    deliveries: int = 0
    """How often the branch was about to go out."""
    archived: dict[str, str] = field(default_factory=dict)
    """Where each archived document was → where it is."""
    conflicts: tuple[str, ...] = ()
    conflict_words: str = ""
    merged_onto: str = ""
    """Where the branch was before the base was merged into it, until that merge is reviewed. Empty: nothing came in."""
    is_unreviewed: bool = False
    """Something came onto the branch since it was last audited."""
    too_large: str = ""
    """Why stages that the mode skips are visited after all. Empty: they are skipped."""
    after_review: tuple[str, str] = ("", "")
    """Where a review leads that is made up for, and who made what is looked at there."""
    guidance: list[str] = field(default_factory=list)
    notes_taken: set[str] = field(default_factory=set)
    backlog: list[str] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)
    changed: set[str] = field(default_factory=set)
    """Paths that the branch has changed."""
    draft: WorktreeSnapshot | None = None
    """Work that was not committed when its turn ended, for the next turn to go on with."""
    skills: list[OfferedSkill] = field(default_factory=list)
    collides: set[str] = field(default_factory=set)
    """Branches of other tasks that cannot be merged with this one."""
    alike: list[str] = field(default_factory=list)
    """Places that look like secrets, for a person to look at before they go out."""
    usage: Usage = field(default_factory=Usage)
    stuck: int = 0

    @property
    def feat(self) -> str:
        return slug_of(self.job.task)

    @property
    def name(self) -> str:
        """The task's own name: the words, and what no other run has."""
        return task_name(self.job.task, self.run_id)

    @property
    def own_documents(self) -> frozenset[str]:
        """What the pipeline itself has put on the branch about its work."""
        named = (*self.documents, *self.reports, self.plan, self.verification, self.review)
        return frozenset({*named, *self.archived.values(), BACKLOG, MEMORY} - {""})

    @property
    def is_light(self) -> bool:
        """Whether this run does without the review of its plan, and so far may."""
        return bool(self.job.spec.mode(self.job.mode).skip) and not self.too_large

    @property
    def branch(self) -> str:
        return self.workspace.record.branch.removeprefix("refs/heads/")

    @property
    def is_green(self) -> bool:
        return all_passed(self.evidence)

    def open_before(self, beside: str = "") -> list[str]:
        """Open findings beside those of the last answer and of one stage, with where each is from."""
        return [
            f"{name} ({verdict}): {text}"
            for (name, verdict), texts in self.open.items()
            for text in texts
            if text not in self.feedback and name != beside
        ]

    def document_of(self, stage: Stage, number: int) -> str:
        return stage.document.format(feat=self.feat, round=number)

    def archive(self, paths: Mapping[str, str]) -> None:
        """Know the documents by where they are now."""
        self.archived |= paths
        self.documents.clear()
        self.reports = [self.archived.get(path, path) for path in self.reports]
        self.reviews = {name: paths.get(path, path) for name, path in self.reviews.items()}
        for name in ("plan", "verification", "review", "evidence_path"):
            setattr(self, name, self.archived.get(getattr(self, name), getattr(self, name)))

    def keep(self, documents: Sequence[str]) -> None:
        self.documents += [each for each in documents if each not in self.documents]


def task_name(task: str, run_id: str) -> str:
    """Two tasks with the same words never collide."""
    return f"{slug_of(task)}-{short_id(run_id)[:6]}"


@dataclass(frozen=True)
class Desk:
    """The run, the house and where the run stands."""

    ctx: FlowContext
    kit: PipelineKit
    trip: Trip
    found: Found = field(default_factory=Found)
    """What there was at the start."""

    @property
    def checks(self) -> tuple[Check, ...]:
        """What podium.yaml names, else what was found, before any agent came or at least in what was added."""
        named = self.kit.checks()
        return (self.found.checks or self.trip.added_checks) if named is None else named

    def trailers(self, step: str, reply: Reply | None = None) -> Mapping[str, str]:
        """What tells whose commit it is, and that it was made."""
        said = {"Podium-Run": self.trip.run_id, "Podium-Step": step}
        return said | ({"Podium-Agent": reply.agent} if reply is not None and reply.agent else {})

    def stage(self, name: str) -> Stage:
        return self.trip.job.spec.stages[name]


class Awaited(FrozenModel):
    """What a step waits for before it is done again."""

    approval_id: str
    approval_deadline: UtcDatetime | None


class AwaitsApproval(NeedsHuman):
    """A step cannot end before a person has answered."""

    def __init__(self, approval_id: str, deadline: UtcDatetime | None, what: str) -> None:
        super().__init__(f"{what}: `podium approve {approval_id}`")
        self.awaited = Awaited(approval_id=approval_id, approval_deadline=deadline)


async def approved_step(
    desk: Desk,
    name: str,
    work: Callable[[StepContext], Awaitable[Any]],
    *,
    index: int,
    returns: Any,
) -> Any:
    """A step that is done again, under a name of its own, once what it waits for is answered."""
    for attempt in count():

        async def unless_awaited(step: StepContext) -> Any:
            try:
                return await work(step)
            except AwaitsApproval as waits:
                desk.ctx.note(NoteTaken(text=str(waits)))
                return waits.awaited

        found = await desk.ctx.step(
            f"{name}:asked{attempt}" if attempt else name,
            unless_awaited,
            index=index,
            returns=returns | Awaited,
        )
        if not isinstance(found, Awaited):
            return found
        signal = f"approval:{found.approval_id}"
        await desk.ctx.wait(signal, index=attempt, until=found.approval_deadline)
    raise AssertionError("attempts are counted without end")


async def ask_a_person(desk: Desk, name: str, reason: str) -> None:
    """Stop until somebody has looked and resumed the run; what they say goes into the next prompt."""
    desk.trip.stuck += 1
    how = (
        f'; look at it, then `podium resume {desk.trip.run_id} --note "…"` goes on with your words'
    )
    signal = await desk.ctx.ask_person(name, f"{reason}{how}", index=desk.trip.stuck)
    said = signal.payload
    if isinstance(said, str) and said.strip():
        desk.trip.guidance.append(said.strip())
