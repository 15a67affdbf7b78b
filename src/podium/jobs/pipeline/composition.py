"""Composition of the flow: its dependencies, its input, its agents and the `hand_over` tool."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from podium.agents.turn_step import RoleAgent
from podium.app.agent_builder import agents_by_role, build_agent
from podium.app.checks import named_checks
from podium.app.kernel_flows import supervisor_toolboxes
from podium.config.folders import PROJECT_FILE, project_id_in
from podium.core.decisions import Tier, ToolSpec
from podium.core.errors import BadInput, UserMustAct
from podium.core.forge import CommentAnswer, PullRequestDraft
from podium.core.model import Json
from podium.core.workspaces import CheckoutStatus
from podium.jobs.pipeline import PipelineDeps, PipelineJob, PipelineSpec, pipeline
from podium.jobs.pipeline.agent_text import shortened
from podium.jobs.pipeline.attempts import SharedBudget
from podium.jobs.pipeline.batch_forge import BatchForge
from podium.jobs.pipeline.follow_up import ANSWER
from podium.jobs.pipeline.issue import PinnedIssue
from podium.jobs.pipeline.issue_claim import IssueWork, IssueWorkFactory
from podium.jobs.pipeline.issue_report import report_on_issue_tool
from podium.jobs.pipeline.spec import pipeline_prompts, pipeline_spec
from podium.ports import FlowBody, Forge
from podium.render.text import counted

if TYPE_CHECKING:
    from podium.app.app import Podium
    from podium.jobs.pipeline.batch import BatchJob
    from podium.jobs.pipeline.task_list import BatchTask
    from podium.tools import Tool
    from podium.tools.scope import ToolScope


NAME = "hand_over"


def hand_over_tool(forge: Forge) -> Tool:
    """No agent is offered it: it stands in the supervisor's own registry."""
    from podium.tools import Tool

    async def hand_over(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
        request = await forge.deliver(PullRequestDraft.model_validate(arguments))
        return {
            **request.model_dump(mode="json"),
            "branch": arguments["branch"],
            "commit": arguments["commit"],
        }

    spec = ToolSpec(
        name=NAME,
        description="Push one branch and open its pull request, or write the file that stands for one.",
        input_schema=PullRequestDraft.model_json_schema(),
        tier=Tier.T1,
        receipt_fields=("branch", "commit", "pushed", "url", "number", "file"),
        # It finds what is there already: a crash in between leaves no doubt.
        idempotent=True,
        timeout_seconds=900.0,
    )
    return Tool(spec, hand_over)


def answer_comment_tool(forge: Forge) -> Tool:
    """No agent is offered it: it stands in the supervisor's own registry."""
    from podium.tools import Tool

    async def answer_comment(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
        answer = CommentAnswer.model_validate(arguments)
        posted = await forge.answer_comment(answer)
        about = {"number": answer.number, "comment": answer.comment.key}
        return {**posted.model_dump(mode="json"), **about}

    spec = ToolSpec(
        name=ANSWER,
        description="Answer one comment of the run's own pull request.",
        input_schema=CommentAnswer.model_json_schema(),
        tier=Tier.T1,
        receipt_fields=("number", "comment", "id", "url", "existed", "unanswered"),
        # It finds the answer that is there already: a crash in between leaves no doubt.
        idempotent=True,
        timeout_seconds=300.0,
    )
    return Tool(spec, answer_comment)


HUMAN_REVIEW = "docs/dev_docs/HUMAN_REVIEW.md"
DEFAULT_ROLE = "default"
"""Plays every role that podium.yaml does not name."""
LEAST_FREE_BYTES = 50_000_000
MAX_CHARACTERS = 100_000
"""A longer task belongs in a file that the task names."""
_NOTES_BYTES = 200_000


async def build_pipeline(podium: Podium) -> FlowBody:
    """Build the flow with the agents, workspaces and forge of this project."""
    return pipeline(await _pipeline_deps(podium))


async def build_batch(podium: Podium) -> FlowBody:
    """Build the flow of several tasks; this process serves the queue of its runs."""
    from podium.jobs.pipeline.batch import BatchDeps, batch

    engine = await podium.hosting_engine()
    return batch(BatchDeps(await _pipeline_deps(podium), engine.serve))


async def _pipeline_deps(podium: Podium) -> PipelineDeps:
    spec = pipeline_spec(podium.configuration)
    forge = BatchForge(podium.forge(push=spec.push))

    async def cancel(run_id: str, why: str) -> None:
        engine = await podium.engine()
        await engine.cancel(run_id, by="podium", why=why)

    issue_work = issue_work_factory(podium, forge, spec)
    return PipelineDeps(
        role_agent_for=await _role_agents(podium),
        budget=await shared_budget(podium),
        clock=podium.clock,
        workspaces=podium.workspaces,
        workspace_spec=podium.workspace_spec,
        forge=forge,
        checks=lambda: named_checks(podium.configuration),
        run_check=podium.check_runner.run,
        toolbox_in=supervisor_toolboxes(
            podium,
            hand_over_tool(forge),
            answer_comment_tool(forge),
            report_on_issue_tool(issue_work),
        ),
        human_notes=lambda: asyncio.to_thread(_human_notes, podium.folders.project),
        journal=await podium.journal(),
        looks_secret=podium.looks_secret,
        redact=podium.redactor.text,
        change_risk=podium.gate.change_risk,
        cancel=cancel,
        issue_work=issue_work,
    )


async def shared_budget(podium: Podium) -> SharedBudget:
    """Budgets of turns; attempts at one task share that of a run."""
    tracker = await podium.budget_tracker()
    return SharedBudget(tracker.store, tracker.clock, tracker.budgets)


async def attempts_job(
    podium: Podium,
    text: str,
    *,
    attempts: int,
    agents: Sequence[str] = (),
    mode: str = "direct",
    base: str = "",
    parallel: int = 0,
) -> BatchJob:
    """Input of a run of several attempts at one task. Raises `BadInput` and changes nothing."""
    from podium.jobs.pipeline.batch import BatchJob
    from podium.jobs.pipeline.task_list import BatchTask

    if len(agents) > attempts:
        raise BadInput(
            f"--agents names {len(agents)} agents for {counted(attempts, 'attempt')}; raise --attempts"
        )
    names = tuple(dict.fromkeys(agents)) or usable_agents(podium)
    common = await pipeline_job(podium, text, mode=mode, agent=names[0] if names else "", base=base)
    for name in names[1:]:
        _check_agents(podium, common.spec, name)
    used = tuple(names[number % len(names)] if names else "" for number in range(attempts))
    warnings = common.warnings
    if len(set(used)) < attempts:
        listed = ", ".join(names) or "the configured ones"
        warnings += (
            f"{counted(attempts, 'attempt')} and {counted(len(set(used)), 'agent')} ({listed}): agents take no seed, so "
            "attempts of the same agent differ by chance.",
        )
    fields = {name: getattr(common, name) for name in type(common).model_fields}
    return BatchJob(
        **fields | {"agent": "", "warnings": warnings, "shares_budget": True},
        tasks=tuple(
            BatchTask(text=common.task, id=str(number), agent=name)
            for number, name in enumerate(used, 1)
        ),
        parallel=parallel or common.spec.parallel,
        attempts=True,
    )


def usable_agents(podium: Podium) -> tuple[str, ...]:
    """Agents of podium.yaml whose program and secrets are there, in its order."""
    return tuple(name for name in podium.settings.agents if _is_usable(podium, name))


def _is_usable(podium: Podium, name: str) -> bool:
    try:
        _check_program(podium, name)
    except UserMustAct:
        return False
    return True


async def batch_job(
    podium: Podium,
    tasks: Sequence[BatchTask],
    *,
    mode: str = "direct",
    agent: str = "",
    base: str = "",
    parallel: int = 0,
    group: int = 1,
) -> BatchJob:
    """Input of a run of several tasks. Raises `BadInput` for any of them, and changes nothing."""
    from podium.jobs.pipeline.batch import BatchJob

    common = await pipeline_job(podium, tasks[0].text, mode=mode, agent=agent, base=base)
    for task in tasks:
        if task.mode and task.mode not in common.spec.modes:
            modes = ", ".join(common.spec.modes)
            raise BadInput(f"task {task.id}: there is no mode {task.mode!r}; modes: {modes}")
        if task.agent:
            _check_agents(podium, common.spec, task.agent)
    title = f"{counted(len(tasks), 'task')}: {'; '.join(task.title for task in tasks)}"
    fields = {name: getattr(common, name) for name in type(common).model_fields}
    return BatchJob(
        **fields | {"task": shortened(title, 200)},
        tasks=tuple(tasks),
        parallel=parallel or common.spec.parallel,
        group=group,
    )


def issue_work_factory(podium: Podium, forge: Forge, spec: PipelineSpec) -> IssueWorkFactory:
    """Build the work of runs on issues, with the labels and the lease of today's settings."""

    async def issue_work(
        repository: str, base: str, number: int, run_id: str, login: str
    ) -> IssueWork:
        tracker = await forge.issues(repository, base)
        worker = intake_worker(podium)
        return IssueWork(tracker, number, run_id, worker, spec.intake, podium.clock, login)

    return issue_work


def intake_worker(podium: Podium) -> str:
    """Name of this project folder among all that take issues. It names no machine, and a copied folder gets its own."""
    identity = project_id_in(podium.folders.state) or str(podium.folders.project)
    return f"worker-{hashlib.sha256(identity.encode()).hexdigest()[:12]}"


async def pipeline_job(
    podium: Podium,
    task: str,
    *,
    mode: str = "direct",
    agent: str = "",
    base: str = "",
    issue: PinnedIssue | None = None,
) -> PipelineJob:
    """Everything that is looked at before a run is stored. Raises `BadInput` and changes nothing."""
    from podium.git.repository import look_at

    _check_task(task)
    spec = pipeline_spec(podium.configuration)
    if mode not in spec.modes:
        raise BadInput(f"there is no mode {mode!r}; modes: {', '.join(spec.modes)}")
    look = await look_at(podium.repository_git, str(podium.folders.project))
    if look.sparse:
        raise BadInput(
            f"{look.checkout!r} is a sparse checkout, and documents outside its patterns cannot be committed; run "
            "`git sparse-checkout disable`, or use another clone"
        )
    _check_disk(look.checkout)
    _check_agents(podium, spec, agent)
    named_checks(podium.configuration)
    warnings = _uncommitted(look, spec)
    if not base and not look.branch:
        raise BadInput("HEAD is detached; pass --base BRANCH to choose the branch to start from")
    return PipelineJob(
        task=task.strip(),
        mode=mode,
        repository=look.checkout,
        base=await _branch(podium, base) if base else look.branch,
        agent=agent,
        spec=spec,
        prompts=pipeline_prompts(podium.configuration, spec),
        warnings=warnings,
        issue=issue,
    )


def _check_disk(checkout: str) -> None:
    """A worktree, its documents and the record have to fit in beside the checkout."""
    free = shutil.disk_usage(checkout).free
    if free < LEAST_FREE_BYTES:
        raise BadInput(
            f"not enough disk space for {checkout!r}: {free // 1_000_000} MB free, "
            f"{LEAST_FREE_BYTES // 1_000_000} MB needed; free some space"
        )


def _uncommitted(look: CheckoutStatus, spec: PipelineSpec) -> tuple[str, ...]:
    """Warn of changes that no agent will see. podium.yaml does not count: it is read where it lies."""
    changed = [path for path in look.changed if path != PROJECT_FILE]
    if not changed:
        return ()
    more = look.changed_count - len(look.changed)
    listed = ", ".join(changed[:5]) + (f" and {more} more" if more else "")
    if spec.dirty == "warn":
        return (f"Uncommitted changes, which agents will not see: {listed}.",)
    raise BadInput(
        f"uncommitted changes: {listed}; agents would not see them: commit or stash them, or set "
        "`flows: pipeline: dirty: warn` in podium.yaml"
    )


def _check_task(task: str) -> None:
    if not task.strip():
        raise BadInput(
            'the task is empty; describe what to do, such as: podium run "Add a dark mode toggle"'
        )
    if len(task) > MAX_CHARACTERS:
        raise BadInput(
            f"the task has {len(task)} characters, more than {MAX_CHARACTERS}; put the details into a file of "
            "the repository and name that file in the task"
        )


async def _branch(podium: Podium, base: str) -> str:
    result = await podium.repository_git.run(
        "-C", str(podium.folders.project), "rev-parse", "--verify", "--quiet", f"refs/heads/{base}^{{commit}}",
        accept=(0, 1, 128),
    )  # fmt: skip
    if result.exit_code != 0:
        raise BadInput(f"there is no branch {base!r}; list branches with `git branch`")
    return base


def _check_agents(podium: Podium, spec: PipelineSpec, agent: str) -> None:
    """Resolve the agents of all roles before anything begins. Raises `BadInput`."""
    roles = {stage.role for stage in spec.stages.values()} | {spec.triage_role} - {""}
    names = {name for role in sorted(roles) for name in agents_of(podium, role, agent)[:1]}
    for name in sorted(names):
        _check_program(podium, name)


def _check_program(podium: Podium, name: str) -> None:
    """Make sure that the agent's program and secrets are there, before a branch is made. Raises `BadInput`."""
    from podium.agents.kinds import ABOUT

    kind, configuration = podium.settings.agents[name].kind, podium.configuration
    about = ABOUT.get(kind)
    if about is None:
        kinds = ", ".join(sorted(ABOUT))
        raise BadInput(f"agent {name!r}: unknown kind {kind!r}; kinds: {kinds}")
    # Each raises when nobody has trusted what a project says of it.
    configuration.base_url_of(name)
    configuration.options_of(name)
    for value in configuration.env_of(name).values():
        if value.startswith("secret://"):
            podium.resolve_secret(value.removeprefix("secret://"))
    if not about.is_program:
        return
    program = (configuration.command_of(name) or about.program)[0]
    if shutil.which(program, path=podium.environ.get("PATH")) is None:
        how = f" with `{about.install}`" if about.install else ""
        raise BadInput(
            f"agent {name!r}: program {program!r} is not installed; install it{how}, or choose another "
            "agent with --agent NAME"
        )


def agents_of(podium: Podium, role: str, agent: str = "") -> tuple[str, ...]:
    """The names of those who play a role, in the order of asking. Raises `BadInput`."""
    settings = podium.settings
    if agent:
        if agent not in settings.agents:
            listed = ", ".join(sorted(settings.agents)) or "none"
            raise BadInput(f"podium.yaml has no agent {agent!r}; agents: {listed}")
        return (agent,)
    for name in (role, DEFAULT_ROLE):
        if name in settings.roles:
            return settings.roles[name].agents
    if len(settings.agents) == 1:
        return tuple(settings.agents)
    if not settings.agents:
        raise BadInput(
            "podium.yaml has no agent; add one, such as `agents: {claude: {kind: claude}}` (kinds: gemini, "
            "claude, codex, opencode, acp, api, bus, command, scripted); `podium agents list` shows what is installed"
        )
    listed = ", ".join(sorted(settings.agents))
    raise BadInput(
        f"no agent is assigned to role {role!r}; name one under `roles: {role}:` or `roles: {DEFAULT_ROLE}:`, or "
        f"pass --agent NAME; agents: {listed}"
    )


async def _role_agents(podium: Podium) -> Callable[[str, str], RoleAgent]:
    from podium.agents import FailoverAgent

    by_role = await agents_by_role(podium)
    doors, journal = await podium.hook_doors(), await podium.journal()
    made: dict[tuple[str, ...], RoleAgent] = {}

    def role_agent_for(role: str, agent: str) -> RoleAgent:
        names = agents_of(podium, role, agent)
        if not agent and role in podium.settings.roles:
            return replace(by_role(role), is_patient=True)
        if names not in made:
            limits = {name: podium.settings.agents[name].limits for name in names}
            agents = [build_agent(podium, name, doors) for name in names]
            failover = FailoverAgent(agents, journal, limits)
            made[names] = RoleAgent(role, failover, limits=limits[names[0]], is_patient=True)
        return replace(made[names], role=role)

    return role_agent_for


def _human_notes(project: Path) -> str:
    """Only a plain file in the project itself: what a link leads to may be anybody's."""
    path = project / HUMAN_REVIEW
    if path.is_symlink() or not path.resolve().is_relative_to(project.resolve()):
        return ""
    try:
        with path.open("rb") as file:
            return file.read(_NOTES_BYTES).decode(errors="replace")
    except OSError:
        return ""
