"""Input, dependencies and state of a pipeline run, and the question to a person when neither can continue."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from pydantic import Field

from podium.agents.budget_tracker import BudgetTracker
from podium.agents.turn_step import RoleAgent
from podium.app.checks import Check, CheckResult, Detection, RunCheck
from podium.core.decisions import Tier, Usage
from podium.core.errors import NeedsHuman
from podium.core.events import NoteTaken
from podium.core.forge import PullComment, RemoteBase
from podium.core.ids import short_id
from podium.core.model import FrozenModel, Json, NonEmpty, UtcDatetime
from podium.core.turns import Reply
from podium.core.workspaces import WorkspaceSpec, WorktreeSnapshot
from podium.jobs.pipeline.agent_text import one_line, slug_of
from podium.jobs.pipeline.findings import Finding, TrackedFinding, fingerprint_of
from podium.jobs.pipeline.issue import PinnedIssue
from podium.jobs.pipeline.issue_claim import IssueWorkFactory
from podium.jobs.pipeline.payloads import ProposedTest, SkillProposal
from podium.jobs.pipeline.spec import FORWARD, Does, PipelineSpec, Stage
from podium.jobs.pipeline.test_integrity import IntegrityFinding
from podium.ports import (
    Clock,
    FlowContext,
    Forge,
    Journal,
    StepContext,
    Toolbox,
    Workspace,
    Workspaces,
)


@dataclass(frozen=True)
class PipelineDeps:
    """Dependencies of the pipeline's flow."""

    role_agent_for: Callable[[str, str], RoleAgent]
    """Agent for a role; the second argument names an agent that plays all roles. Raises `BadInput`."""
    budget: BudgetTracker
    clock: Clock
    workspaces: Workspaces
    workspace_spec: Callable[..., WorkspaceSpec]
    """A workspace as the settings want it, by task, `base`, `branch` and `run_id`."""
    forge: Forge
    checks: Callable[[], tuple[Check, ...] | None]
    """Checks that podium.yaml names now: they can be corrected while a run waits. None: it names none."""
    run_check: RunCheck
    toolbox_in: Callable[[str], Awaitable[Toolbox]]
    """The tools of a folder, behind the gate."""
    human_notes: Callable[[], Awaitable[str]]
    """Current notes of a person for agents, from their own checkout."""
    journal: Journal
    """For telling other runs what concerns them."""
    looks_secret: Callable[[str], str | None]
    redact: Callable[[str], str]
    """Takes secrets out of what is written down for others to see."""
    change_risk: Callable[[str, str], tuple[Tier, tuple[str, ...]]]
    """Tier and zones of a change to a path in a root, by the policy."""
    cancel: Callable[[str, str], Awaitable[None]]
    """Ends a run as cancelled, with the reason."""
    issue_work: IssueWorkFactory


class PipelineJob(FrozenModel):
    """A task and how it is to be worked on, whole: a resumed run goes by what it was started with."""

    task: NonEmpty
    mode: NonEmpty
    repository: NonEmpty
    """The user's checkout."""
    base: NonEmpty
    """Short name of the branch that the work starts from and is meant for."""
    agent: str = ""
    """Plays every role. Empty: whom podium.yaml names."""
    spec: PipelineSpec
    prompts: dict[str, str] = Field(default_factory=dict)
    """Name → text."""
    warnings: tuple[str, ...] = ()
    """Warnings for the person who starts it."""
    start_at: str = ""
    """Commit of earlier work that the branch starts from. Empty: the base."""
    start: str = ""
    """Stage that the run starts with. Empty: that of its mode."""
    shares_budget: bool = False
    """An attempt: all at the same task together may use what one run may."""
    issue: PinnedIssue | None = None
    """The issue whose text the task is."""

    @property
    def subject(self) -> str:
        """The text that branch, documents and pull request are named after: of an issue its title."""
        return self.task.split("\n", 1)[0] if self.issue else self.task

    def followed(self) -> PipelineJob:
        """The same job, whose run stays with the pull request."""
        follow_up = self.spec.follow_up.model_copy(update={"enabled": True})
        return self.model_copy(
            update={"spec": self.spec.model_copy(update={"follow_up": follow_up})}
        )

    def prompt(self, stage: str) -> str:
        own = self.spec.stages[stage].prompt or stage
        return self.prompts[self.spec.mode(self.mode).prompts.get(stage, own)]


Trailers = Mapping[str, str]


JUDGING = (
    "read_file",
    "list_files",
    "find_files",
    "search_text",
    "git_status",
    "git_diff",
    "git_log",
    "run_command",
    "ask_human",
)
"""Commands are among them: a judge may run the tests."""
_DOCUMENT = (*JUDGING, "write_file", "edit_file")
"""CLIs write a new file by either of the two."""
_TOOLS: Mapping[Does, tuple[str, ...]] = {
    "review": JUDGING,
    "audit": _DOCUMENT,
    "report": _DOCUMENT,
    "plan": _DOCUMENT,
}
"""Stages that are not named have all tools."""


def with_tools_for(role_agent: RoleAgent, does: Does) -> RoleAgent:
    """The player with the tools of such a stage, unless the settings name those of its role."""
    tools = _TOOLS.get(does)
    if tools is None or role_agent.allowed_tools is not None:
        return role_agent
    return replace(role_agent, allowed_tools=tools)


INPUTS = ".podium-inputs"
"""A folder that ignores itself: what is too long for a prompt and belongs in no commit."""
DEPENDENCIES = ("node_modules", ".venv", "venv", "vendor", ".tox", ".nox", INPUTS)
"""Names of ignored folders that stay for the checks: what a project depends on is not built anew each time."""
MEMORY = "AGENT_MEMORY.md"
BACKLOG = "docs/dev_docs/backlog.md"
SENT_BACK = "SENT_BACK"
"""Supervisor's verdict on an answer whose deliverables are missing."""
RED = "RED"
"""Supervisor's verdict when the checks fail."""


class Baseline(Detection):
    """Checks, ignored files and conventions of the project before any agent came."""

    ignored: tuple[str, ...] = ()
    """Ignored files left by the set-up."""
    conventions: dict[str, str] = Field(default_factory=dict)
    """Path → text of what the repository says to agents and contributors."""


class BaseReport(FrozenModel):
    """The base before any agent came: its checks, and what a workspace lacks of it."""

    commit: str
    results: tuple[CheckResult, ...] = ()
    remote: RemoteBase = RemoteBase()
    is_behind: bool = False
    """The remote's base branch has commits that this base does not have."""
    empty_submodules: tuple[str, ...] = ()
    """Paths of submodules that the workspace does not contain."""
    lfs_pointers: tuple[str, ...] = ()
    """Files that are pointers of Git LFS here, without their content."""
    not_runnable: tuple[str, ...] = ()
    """Checks that could not do their work, each with the reason in one line."""

    @property
    def red(self) -> tuple[CheckResult, ...]:
        return tuple(result for result in self.results if not result.passed)


class ProofRun(FrozenModel):
    """A test run on the base with the branch's test files, and on the branch."""

    command: str
    files: tuple[str, ...] = ()
    """Test files of the branch that were put on the base. Empty: the base's own tests."""
    on_base: CheckResult
    on_branch: CheckResult


class FixProof(FrozenModel):
    """Test runs that fail on the base and pass on the branch, or why there is none."""

    base: str
    commit: str
    runs: tuple[ProofRun, ...] = ()
    problem: str = ""
    """Reason why nothing proves the fix. Empty: it is proved."""
    reason: str = ""
    """The developer's reason why no test can show it."""
    is_accepted: bool = False
    """A person let it pass without a proof."""
    answer: str = ""
    """The person's words."""


class OfferedSkill(FrozenModel):
    """A skill that waits for a person's word."""

    name: str
    path: str
    text: str
    approval_id: str = ""
    deadline: UtcDatetime | None = None


class Withheld(FrozenModel):
    """Backlog items and lessons of an answer whose commits were taken back, kept for the next answer."""

    backlog: tuple[str, ...] = ()
    lessons: tuple[str, ...] = ()


class Settled(FrozenModel):
    """Supervisor's evaluation of an answer."""

    verdict: str
    words: str = ""
    """Input for the next stage: the feedback, the problems, the output of checks."""
    problems: tuple[str, ...] = ()
    document: str = ""
    documents: tuple[str, ...] = ()
    """All that were written on the way and are archived at the end."""
    head: str
    """Commit of the branch in the user's repository now."""
    commits: tuple[str, ...] = ()
    discarded: tuple[str, ...] = ()
    backlog: tuple[str, ...] = ()
    lessons: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    """Paths that came back with it."""
    feedback: Json = None
    """Remarks of the answer besides its result, to be triaged."""
    alike: tuple[str, ...] = ()
    """Places in test data that look like secrets."""
    draft: WorktreeSnapshot | None = None
    withheld: Withheld = Withheld()
    skill: SkillProposal | None = None
    disputed: tuple[str, ...] = ()
    """Checks that the answer calls wrong, with its reasons."""
    proof: tuple[ProposedTest, ...] = ()
    """Tests that the answer names as the proof of a fix."""
    no_proof: str = ""
    """The answer's reason why no test can show the fix."""
    rules: int = 0
    """Version of the rules it was recorded under. Runs of older code keep theirs: 1 asks a person about disputed checks and
    drops remarks that are settled."""
    test_changes: tuple[str, ...] = ()
    """Reasons of the answer for removed, skipped or weaker tests and checks."""
    gives_up: bool = False
    """The answer reports a failure, and nothing else is wrong with it."""
    no_plan: str = ""
    """Planner's reason why there is nothing to plan: a person decides."""


class StageSummary(FrozenModel):
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
    findings: tuple[str, ...] = ()
    """Findings for which the work was sent back, the first of them."""


class Remark(FrozenModel):
    """Remark of an agent besides its result, and the stage it is from."""

    stage: str
    role: str
    round: int
    verdict: str
    document: str = ""
    text: str
    rules: int = 0
    """Those of the answer: see `Settled`."""


class FollowedPull(FrozenModel):
    """The pull request that the run stays with, and what is done about it so far."""

    number: int
    url: str
    base: str
    """Branch that it merges into, as a person has last seen it."""
    secret: str
    """Makes the markers of answers: nobody else can tell which line an answer will begin with."""
    pushed: tuple[str, ...] = ()
    """Commits that the branch was pushed at, the last one last."""
    open_comments: tuple[PullComment, ...] = ()
    """Comments that are worked on, to be answered after the next push."""
    known_comments: tuple[str, ...] = ()
    """Keys of comments that are answered, and of the answers themselves."""
    known_checks: tuple[str, ...] = ()
    answered: int = 0
    requests: int = 0
    """Number of steps that asked the forge: it numbers them."""
    rounds: int = 0
    rounds_since_person: int = 0
    idle_polls: int = 0
    """Polls without news since the last one that had some."""
    red_since: UtcDatetime | None = None
    closed_since: UtcDatetime | None = None
    conflict_head: str = ""
    """Head for whose conflict with the base the base was merged already."""


@dataclass(frozen=True)
class PipelineState:
    """State of one run between two steps: a value, which stages return changed."""

    job: PipelineJob
    run_id: str
    workspace: Workspace
    head: str
    """Last commit that came back into the user's repository."""
    base: str
    """Commit of the base that the branch contains."""
    stage_runs: Mapping[str, int] = field(default_factory=dict)
    taken: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Number of times a verdict was given since a person last looked."""
    last_findings: Mapping[tuple[str, str], tuple[Finding, ...]] = field(default_factory=dict)
    reports: tuple[str, ...] = ()
    plan: str = ""
    is_stale: bool = False
    """Something was changed since the checks ran."""
    work_from: str = ""
    """Commit of the branch when the current work began."""
    sent_back: str = ""
    """The stage whose last answer was sent back."""
    verification: str = ""
    """The developer's own report on what was checked off."""
    review: str = ""
    reviews: Mapping[str, str] = field(default_factory=dict)
    """Stage → its last review."""
    documents: tuple[str, ...] = ()
    feedback: str = ""
    open: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    """Stage and verdict → what was found under it, until the stage is left with a verdict that leads on."""
    withheld: Withheld = field(default_factory=Withheld)
    remarks: tuple[Remark, ...] = ()
    """Those that nobody has decided about yet."""
    decided: frozenset[str] = frozenset()
    """Keys of the points of remarks that were decided about."""
    is_developed: bool = False
    """A stage that changes code was left with its checks passed."""
    producer: str = ""
    evidence: tuple[CheckResult, ...] = ()
    evidence_path: str = ""
    on_base: Mapping[tuple[str, str], CheckResult] = field(default_factory=dict)
    """Commit of the base and command → how a check that was red with the work ended there."""
    before: BaseReport | None = None
    """The base before any agent came. None: it was not looked at."""
    proof: FixProof | None = None
    """Of the last work; None: none was asked for."""
    is_proof_asked: bool = False
    """Work was sent back for a proof once."""
    returned_red: frozenset[str] = frozenset()
    """Checks that were red before and after in the same way, as whoever works was told once."""
    excused_red: frozenset[str] = frozenset()
    """Those of the last checks that are not held against the work."""
    is_red_accepted: bool = False
    """A person wants the branch with them."""
    added_checks: tuple[Check, ...] = ()
    """Checks of a project that had none, found in what the run itself has added."""
    disputed: tuple[str, ...] = ()
    """Checks that whoever worked called wrong, with their reasons."""
    integrity: tuple[IntegrityFinding, ...] = ()
    """Findings of the last comparison of tests and checks with the base."""
    integrity_returns: int = 0
    """Number of times that work was sent back for it."""
    accepted: Mapping[str, str] = field(default_factory=dict)
    """Key of each finding of these that a person accepted → by whom, and their reason."""
    test_changes: tuple[str, ...] = ()
    """The developer's reasons for them."""
    untested: bool = False
    """There was no check to run on the work."""
    untested_reason: str = ""
    """Reason why it may be delivered untested. Empty: none yet."""
    remote_base: RemoteBase = field(default_factory=RemoteBase)
    """The remote's base branch when it was last looked at."""
    moved_bases: int = 0
    """Number of times it had moved before delivery, since a person last looked."""
    deliveries: int = 0
    """Number of attempts to deliver the branch."""
    archived: Mapping[str, str] = field(default_factory=dict)
    """Old path of each archived document → its new path."""
    delivered: str = ""
    """Commit that stands for the history on the branch, once it was put together. Empty: the branch is the history."""
    histories: tuple[str, ...] = ()
    """Histories of the deliveries, oldest first."""
    history_ref: str = ""
    """Ref of the last one."""
    conflicts: tuple[str, ...] = ()
    conflict_text: str = ""
    merging: RemoteBase = field(default_factory=RemoteBase)
    """The remote's own branch of this run, while merging it has conflicts. Empty: they are with the base."""
    followed: FollowedPull | None = None
    merged_onto: str = ""
    """Commit of the branch before the base was merged into it, until that merge is reviewed. Empty: nothing came in."""
    is_unreviewed: bool = False
    """Something came onto the branch since it was last audited."""
    too_large: str = ""
    """Reason why stages that the mode skips run after all. Empty: they are skipped."""
    after_review: tuple[str, str] = ("", "")
    """Next stage after a review that was skipped at first, and the stage whose work it reviews."""
    guidance: tuple[str, ...] = ()
    notes_taken: frozenset[str] = frozenset()
    backlog: tuple[str, ...] = ()
    stage_summaries: tuple[StageSummary, ...] = ()
    changed: frozenset[str] = frozenset()
    """Paths that the branch has changed."""
    draft: WorktreeSnapshot | None = None
    """Work that was not committed when its turn ended, for the next turn to go on with."""
    skills: tuple[OfferedSkill, ...] = ()
    collides: frozenset[str] = frozenset()
    """Branches of other tasks that cannot be merged with this one."""
    alike: tuple[str, ...] = ()
    """Places that look like secrets, for a person to look at before they go out."""
    usage: Usage = field(default_factory=Usage)
    stuck: int = 0

    @property
    def feat(self) -> str:
        return slug_of(self.job.subject)

    @property
    def name(self) -> str:
        """The task's own name: the words, and what no other run has."""
        return task_name(self.job.subject, self.run_id)

    @property
    def own_documents(self) -> frozenset[str]:
        """Paths of documents that the pipeline itself put on the branch."""
        made = [summary.document for summary in self.stage_summaries]
        named = (*self.documents, *self.reports, self.plan, self.verification, self.review, *made)
        return frozenset({*named, *self.archived.values(), BACKLOG, MEMORY} - {""})

    @property
    def findings(self) -> tuple[TrackedFinding, ...]:
        """Every finding of the run, each once, oldest first."""
        tracked: dict[tuple[str, str, str], TrackedFinding] = {}
        for summary in self.stage_summaries:
            for key, finding in tracked.items():
                if not finding.resolution and _resolves(summary, finding):
                    by = f"{summary.stage}, round {summary.round} ({summary.verdict})"
                    tracked[key] = finding.model_copy(update={"resolution": by})
            for text in summary.findings:
                key = (summary.stage, summary.verdict, fingerprint_of(text))
                earlier = tracked.get(key)
                tracked[key] = TrackedFinding(
                    stage=summary.stage,
                    round=earlier.round if earlier else summary.round,
                    verdict=summary.verdict,
                    text=text,
                )
        return tuple(tracked.values())

    @property
    def open_findings(self) -> tuple[TrackedFinding, ...]:
        """Those that no later verdict resolved."""
        return tuple(finding for finding in self.findings if not finding.resolution)

    @property
    def documents_to_leave_out(self) -> tuple[str, ...]:
        """Documents of the run that the delivered branch does not get."""
        if self.job.spec.documents == "branch":
            return ()
        return tuple(sorted(self.own_documents - {BACKLOG, MEMORY}))

    @property
    def is_light(self) -> bool:
        """True while this run skips the review of its plan."""
        return bool(self.job.spec.mode(self.job.mode).skip) and not self.too_large

    @property
    def branch(self) -> str:
        return self.workspace.record.branch.removeprefix("refs/heads/")

    @property
    def red_as_before(self) -> tuple[CheckResult, ...]:
        """Red checks, if all of them were red before the work in the same way."""
        red = tuple(result for result in self.evidence if not result.passed)
        return red if all(result.as_before for result in red) else ()

    @property
    def is_broken(self) -> bool:
        """A check is red that this work answers for: by its doing, or not yet told apart."""
        red = {result.command for result in self.evidence if not result.passed}
        return not red <= self.excused_red

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

    def with_archived(self, paths: Mapping[str, str]) -> PipelineState:
        """Replace the paths of documents by those that they were archived under."""
        archived = {**self.archived, **paths}

        def now(path: str) -> str:
            return archived.get(path, path)

        return replace(
            self,
            archived=archived,
            documents=(),
            reports=tuple(map(now, self.reports)),
            reviews={name: now(path) for name, path in self.reviews.items()},
            plan=now(self.plan),
            verification=now(self.verification),
            review=now(self.review),
            evidence_path=now(self.evidence_path),
        )

    def with_documents(self, documents: Sequence[str]) -> PipelineState:
        """Add documents that the run put on the branch, each once."""
        return replace(self, documents=tuple(dict.fromkeys((*self.documents, *documents))))


def _resolves(summary: StageSummary, finding: TrackedFinding) -> bool:
    """A judge resolves its findings by a verdict that leads on; what Podium itself found is looked for anew in each round."""
    if summary.stage != finding.stage:
        return False
    if finding.verdict == SENT_BACK:
        return summary.verdict != SENT_BACK
    return summary.verdict in FORWARD or finding.verdict == summary.verdict == RED


def task_name(task: str, run_id: str) -> str:
    """Two tasks with the same words never collide."""
    return f"{slug_of(task)}-{short_id(run_id)[:6]}"


@dataclass(frozen=True)
class StageContext:
    """A run with its dependencies and its state."""

    flow: FlowContext
    deps: PipelineDeps
    state: PipelineState
    baseline: Baseline = field(default_factory=Baseline)
    """The project at the start."""

    def with_state(self, state: PipelineState) -> StageContext:
        return replace(self, state=state)

    @property
    def checks(self) -> tuple[Check, ...]:
        """Checks that podium.yaml names, else those found before any agent came, else those that the work added."""
        named = self.deps.checks()
        return (self.baseline.checks or self.state.added_checks) if named is None else named

    def trailers(self, step: str, reply: Reply | None = None) -> Mapping[str, str]:
        """Commit trailers that identify the run, the step and the agent."""
        trailers = {"Podium-Run": self.state.run_id, "Podium-Step": step}
        return trailers | (
            {"Podium-Agent": reply.agent} if reply is not None and reply.agent else {}
        )

    def stage(self, name: str) -> Stage:
        return self.state.job.spec.stages[name]


class Awaited(FrozenModel):
    """Approval that a step waits for before it runs again."""

    approval_id: str
    approval_deadline: UtcDatetime | None


class AwaitsApproval(NeedsHuman):
    """A step cannot end before a person has answered."""

    def __init__(self, approval_id: str, deadline: UtcDatetime | None, what: str) -> None:
        super().__init__(f"{what}: `podium approve {approval_id}`")
        self.awaited = Awaited(approval_id=approval_id, approval_deadline=deadline)


async def approved_step(
    context: StageContext,
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
                context.flow.note(NoteTaken(text=str(waits)))
                return waits.awaited

        result = await context.flow.step(
            f"{name}:asked{attempt}" if attempt else name,
            unless_awaited,
            index=index,
            returns=returns | Awaited,
        )
        if not isinstance(result, Awaited):
            return result
        signal = f"approval:{result.approval_id}"
        await context.flow.wait(signal, index=attempt, until=result.approval_deadline)
    raise AssertionError("attempts are counted without end")


async def ask_a_person(context: StageContext, name: str, reason: str) -> StageContext:
    """Stop until somebody has looked and resumed the run; what they say goes into the next prompt.

    The question ends with every finding that is still open.
    """
    state = replace(context.state, stuck=context.state.stuck + 1)
    how = f'then continue with `podium resume {state.run_id} --note "…"`'
    question = f"{reason}\nReview it, {how}" if "\n" in reason else f"{reason}; review it, {how}"
    question = "\n".join(filter(None, (question, open_findings_text(state, reason))))
    signal = await context.flow.ask_person(name, question, index=state.stuck)
    reply = signal.payload
    if isinstance(reply, str) and reply.strip():
        state = replace(state, guidance=(*state.guidance, reply.strip()))
    return context.with_state(state)


_MAX_LISTED = 50
_MAX_LISTED_CHARACTERS = 600


def open_findings_text(state: PipelineState, named: str = "") -> str:
    """Every open finding with the stage and round that it is from, but for those that `named` has; empty: none."""
    findings = [finding for finding in state.open_findings if finding.text not in named]
    if not findings:
        return ""
    lines = [
        f"- {finding.source}: {one_line(finding.text, _MAX_LISTED_CHARACTERS)}"
        for finding in findings[:_MAX_LISTED]
    ]
    more = len(findings) - _MAX_LISTED
    return "\n".join(
        [
            "Open findings:",
            *lines,
            *([f"- and {more} more: `podium show {state.run_id}`"] * (more > 0)),
        ]
    )
