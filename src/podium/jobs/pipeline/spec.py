"""The pipeline as configuration: stages, roles and verdicts as shipped, and what podium.yaml and `.podium/prompts/` change."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import Field, PositiveFloat, PositiveInt, Strict, ValidationError, model_validator

from podium.config.chat_settings import require_reference
from podium.config.configuration import Configuration
from podium.config.flow_options import flow_options
from podium.core.errors import BadInput, ConfigInvalid, ConfigProblem
from podium.core.forge import Finding
from podium.core.model import FrozenModel, Json, NonEmpty
from podium.core.steering_files import PROMPT_FILE
from podium.jobs.pipeline.payloads import Answer, Edit, Plan, Report, Work, audit_of, review_of

_SLOT = re.compile(r"\{[^}]*\}")

DELIVER = "deliver"
"""Target that ends the flow: archive, push, pull request."""
BACK = "back"
"""Leads to whoever made what was looked at."""
HUMAN = "human"
"""Leads to a person, and then back."""

DONE = "DONE"
FORWARD = frozenset({DONE, "APPROVE", "PASS"})
"""Verdicts that lead on. All others are bounded."""

Action = Literal["warn", "abort"]

RedBase = Literal["ask", "deliver", "abort"]
"""`ask`: a person decides before the branch goes out. `deliver`: it goes out and says so. `abort`: no run on a red base."""

FixProofRule = Literal["require", "warn", "skip"]
"""`require`: sent back once, then a person decides. `warn`: named in the pull request."""
TestIntegrity = Literal["require", "warn", "skip"]

Does = Literal["report", "plan", "review", "audit", "work", "integrate", "edit"]
"""Purpose of a stage.

report, plan   writes one document, which the supervisor commits
review         gives a verdict; the supervisor writes the review
audit          gives a verdict and writes the review itself
work           changes code and commits; the supervisor runs the checks
integrate      the supervisor merges the base; where that conflicts, the role solves it
edit           changes documents, which the supervisor commits
"""

PromptInput = Literal[
    "task",
    "reports",
    "plan",
    "verification",
    "review",
    "feedback",
    "files",
    "committed",
    "diff",
    "merged",
    "evidence",
    "conflicts",
]
"""Inputs of a stage's prompt, as text where it is not too long, else as the path of a file."""


class Stage(FrozenModel):
    """One kind of step of the pipeline."""

    does: Does
    role: NonEmpty
    phase: str = ""
    """Label on the screen beside its role, such as `A.1`."""
    prompt: str = ""
    """Name of its prompt. Empty: the stage's own name."""
    document: str = ""
    """Path of the document it makes; `{feat}` and `{round}` are put in."""
    gives: tuple[PromptInput, ...] = ("task",)
    next: dict[NonEmpty, NonEmpty]
    """Verdict → stage, or one of `deliver`, `back`, `human`."""
    most: dict[str, Annotated[PositiveInt, Strict()]] = Field(default_factory=dict)
    """Verdict → how often it may be given before a person looks. Else the pipeline's `rounds`."""

    @property
    def contract(self) -> type[Answer]:
        match self.does:
            case "report":
                return Report
            case "plan":
                return Plan
            case "review":
                return review_of(tuple(self.next))
            case "audit":
                return audit_of(tuple(self.next))
            case "edit":
                return Edit
            case "work" | "integrate":
                return Work


class Mode(FrozenModel):
    """First stage of a run, and the stages that it skips while its change is small."""

    start: NonEmpty
    """Stage that the run starts with."""
    skip: tuple[NonEmpty, ...] = ()
    """Stages that are skipped while the change is small."""
    max_lines: Annotated[PositiveInt, Strict()] = 200
    """Lines added and removed up to which a change is small."""
    max_files: Annotated[PositiveInt, Strict()] = 8
    """Files changed up to which a change is small."""
    always: tuple[NonEmpty, ...] = ()
    """Stages that run even if the base has not moved."""
    proves_fix: Annotated[bool, Strict()] = False
    """Work in this mode fixes a bug, which a test has to prove; see `fix_proof`."""
    prompts: dict[NonEmpty, NonEmpty] = Field(default_factory=dict)
    """Stage → the prompt that it has in this mode instead of its own."""


class FollowUp(FrozenModel):
    """Options for the time after the pull request is open."""

    enabled: Annotated[bool, Strict()] = False
    """Stay with the pull request until it is merged or closed. `podium run --follow` does it for one run."""
    rounds: Annotated[PositiveInt, Strict()] = 5
    """Number of rounds of failed checks and comments before a person is asked."""
    authors: tuple[NonEmpty, ...] = ()
    """Accounts whose comments are worked on. Empty: people with access to the repository, no bots."""
    interval: Annotated[float, Field(ge=1.0)] = 60.0
    """Seconds between two looks at the pull request; while nothing happens they grow to 15 minutes."""
    webhook_secret: str = ""
    """Secret of the webhook that wakes the run, as `secret://NAME`. Empty: there is no webhook."""

    @model_validator(mode="after")
    def _of_a_variable(self) -> FollowUp:
        if self.webhook_secret:
            require_reference("webhook_secret", self.webhook_secret)
        return self


class IntakeOptions(FrozenModel):
    """Issues that `podium intake` turns into runs."""

    label: NonEmpty = "podium"
    """Label of issues to work on."""
    claimed_label: NonEmpty = "podium:claimed"
    """Label of issues that a run works on."""
    stop_label: NonEmpty = "podium:stop"
    """Label that cancels the run of an issue."""
    authors: tuple[NonEmpty, ...] = ("OWNER", "MEMBER", "COLLABORATOR")
    """Relations to the repository, as GitHub names them, that an issue's author may have."""
    users: tuple[NonEmpty, ...] = ()
    """Logins that are allowed besides: as authors, as those who label, and as accounts of Podium."""
    queue: str = ""
    """Queue of the runs. Empty: the default one."""
    mode: NonEmpty = "direct"
    """Mode of the runs."""
    base: str = ""
    """Branch to start from. Empty: the one that is checked out."""
    lease_minutes: Annotated[PositiveInt, Strict()] = 60
    """Time after which a claim that is not renewed ends, and another worker may take the issue."""
    interval_seconds: Annotated[PositiveInt, Strict()] = 60
    """Pause of `podium intake --watch` between two looks."""


class PipelineSpec(FrozenModel):
    """All stages, and where each mode enters."""

    modes: dict[NonEmpty, NonEmpty | Mode]
    """Name → the stage it begins with, or more than that."""
    stages: dict[NonEmpty, Stage]
    rounds: Annotated[PositiveInt, Strict()] = 3
    """Number of times that one verdict may send work back before a person is asked."""
    triage_role: str = "feedback_triager"
    """Role that sorts feedback. Empty: all of it goes to the backlog."""
    remarks: Literal["at_once", "after_work"] = "at_once"
    """Time of triage: at once, as in runs older than this option, or once the work is done."""
    document_stage: str = "document"
    """The stage that feedback about documentation leads to. Empty: it goes to the backlog."""
    memory_tokens: Annotated[PositiveInt, Strict()] = 800
    """Space for AGENT_MEMORY.md in a prompt, in tokens."""
    check_seconds: float = 1200.0
    """Time limit of one check, in seconds."""
    remote: Action | dict[Finding, Action] = "warn"
    """Action on an unprotected base branch of the remote; or one action per finding."""
    dirty: Action = "abort"
    """Action on uncommitted changes in the checkout, which no agent will see."""
    skills: Literal["offer", "wait"] = "offer"
    """`wait`: the branch waits for the answers about skills. `offer`: it goes out without those not approved by then."""
    unmoved_base: Literal["review", "deliver"] = "review"
    """Next step after a merge that brought nothing: a review, as in runs older than this option, or
    the delivery."""
    push: Annotated[bool, Strict()] = True
    """Push the branch where there is a remote."""
    commits: Literal["squash", "all"] = "all"
    """Commits of the delivered branch: one or two that stand for its history, or, as in runs older than this option, all."""
    documents: Literal["ref", "branch"] = "branch"
    """Place of plans, reports and reviews: the ref of the run, or, as in runs older than this option, the branch's archive."""
    baseline: Literal["run", "skip"] = "skip"
    """Run the checks on the base before any agent; or not, as in runs older than this option."""
    fix_proof: FixProofRule = "skip"
    """Action on a fix without a test that fails on the base; `skip`, as in runs older than this option, looks for none."""
    red_base: RedBase = "ask"
    """Action on checks that are red on the base, and with the work in the same way."""
    follow_up: FollowUp = FollowUp()
    """Time after the pull request is open."""
    parallel: Annotated[PositiveInt, Strict()] = 3
    """Tasks of one `podium run` that run at the same time."""
    test_integrity: TestIntegrity = "skip"
    """Action on changes that take something away from tests or checks. Runs older than this option skip the comparison."""
    intake: IntakeOptions = IntakeOptions()
    """Issues that become runs."""

    def mode(self, name: str) -> Mode:
        mode = self.modes[name]
        return mode if isinstance(mode, Mode) else Mode(start=mode)

    @property
    def merge_reviews(self) -> tuple[str, ...]:
        """The stages that look at what a merge of the base made."""
        after = [
            target
            for stage in self.stages.values()
            if stage.does == "integrate"
            for target in stage.next.values()
        ]
        return tuple(
            target
            for target in after
            if target in self.stages and self.stages[target].does == "audit"
        )

    def action_on(self, finding: Finding) -> Action:
        """Action on this finding about the remote: `abort` ends the run before it begins."""
        if isinstance(self.remote, dict):
            return self.remote.get(finding, "warn")
        return self.remote if finding in ("unprotected", "partly_protected") else "warn"

    @model_validator(mode="after")
    def _leads_somewhere(self) -> PipelineSpec:
        if self.commits == "all" and self.documents == "ref":
            raise ValueError(
                "commits: `all` keeps the commits of the documents; set `commits: squash` or `documents: branch`"
            )
        targets = {*self.stages, DELIVER, BACK, HUMAN}
        for name, stage in self.stages.items():
            for verdict, target in stage.next.items():
                if target not in targets:
                    raise ValueError(
                        f"stages: {name}: next: {verdict}: there is no stage {target!r}; "
                        f"stages: {', '.join(self.stages)}"
                    )
            _check_verdicts(name, stage)
        for name in self.modes:
            _check_mode(name, self.mode(name), self.stages)
        return self


def _check_mode(name: str, mode: Mode, stages: Mapping[str, Stage]) -> None:
    for stage in (mode.start, *mode.skip, *mode.always, *mode.prompts):
        if stage not in stages:
            raise ValueError(f"modes: {name}: there is no stage {stage!r}")
    for stage in mode.skip:
        # Code that nobody has looked at never goes out.
        if stages[stage].does != "review":
            raise ValueError(
                f"modes: {name}: skip: stage {stage!r} does not review a document and cannot be skipped"
            )


def _check_verdicts(name: str, stage: Stage) -> None:
    needed = {"audit": {"PASS", "FAIL"}, "review": set()}.get(stage.does, {DONE})
    if missing := needed - set(stage.next):
        raise ValueError(f"stages: {name}: next: no stage given for {', '.join(sorted(missing))}")
    unknown = set(_SLOT.findall(stage.document)) - {"{feat}", "{round}"}
    if unknown:
        raise ValueError(
            f"stages: {name}: document: unknown placeholder {', '.join(sorted(unknown))}; use {{feat}} and {{round}}"
        )
    if stage.does in ("report", "plan", "review", "audit") and not stage.document:
        raise ValueError(
            f"stages: {name}: document: missing; give the path of the stage's document"
        )


_Count = Annotated[PositiveInt, Strict()]


class StageOptions(FrozenModel):
    """A stage, or the parts of a built-in stage to change. Unset: as it ships."""

    does: Does | None = None
    """Kind of stage."""
    role: NonEmpty | None = None
    """Role that is asked."""
    phase: str | None = None
    """Label in the output, such as `A.1`."""
    prompt: Annotated[NonEmpty | None, PROMPT_FILE] = None
    """File with its prompt, relative to the project."""
    document: str | None = None
    """Path of the document it writes; `{feat}` and `{round}` are filled in."""
    gives: tuple[PromptInput, ...] | None = None
    """Inputs of its prompt."""
    next: dict[NonEmpty, NonEmpty] | None = None
    """Verdict → next stage, or `deliver`, `back` or `human`."""
    most: dict[NonEmpty, _Count] | None = None
    """Verdict → how often it may be given before a person is asked. Unset: `rounds`."""


class PipelineOptions(FrozenModel):
    """Options of `podium run`. Unset: as it ships."""

    modes: dict[NonEmpty, NonEmpty | Mode] | None = None
    """Modes of `--mode`: name → the stage it starts with, or where it starts, what it skips and what it always does."""
    stages: dict[NonEmpty, StageOptions] | None = None
    """Stages to add or change, by name."""
    rounds: _Count | None = None
    """Number of times a verdict may send work back before a person is asked. 3 unless set."""
    triage_role: str | None = None
    """Role that sorts feedback. `feedback_triager` unless set; empty: all of it goes to the backlog."""
    document_stage: str | None = None
    """Stage that updates documentation after feedback."""
    memory_tokens: _Count | None = None
    """Space for lessons of earlier runs in a prompt, in tokens. 800 unless set."""
    check_seconds: PositiveFloat | None = None
    """Time limit of one check, in seconds. 1200 unless set."""
    remote: Action | dict[Finding, Action] | None = None
    """Action when the remote's base branch is not protected. `warn` unless set."""
    dirty: Action | None = None
    """Action when your checkout has uncommitted changes. `abort` unless set."""
    skills: Literal["offer", "wait"] | None = None
    """Wait for the answer to a skill that an agent proposes, or only offer it. `offer`, which does not wait, unless set."""
    unmoved_base: Literal["review", "deliver"] | None = None
    """Next step when the base has not moved: `review` reviews the merge again. `deliver`, which does not, unless set."""
    push: Annotated[bool, Strict()] | None = None
    """Push the branch and open a pull request. True unless set."""
    commits: Literal["squash", "all"] | None = None
    """Commits of the delivered branch: one or two that stand for its history, or all of them. `squash` unless set."""
    documents: Literal["ref", "branch"] | None = None
    """Place of plans, reports and reviews: a ref of the run, or the branch's archive. `ref` unless set."""
    baseline: Literal["run", "skip"] | None = None
    """Run the checks on the base before any agent starts. `run` unless set."""
    fix_proof: FixProofRule | None = None
    """Proof of a fix by a test that fails on the base and passes on the branch, in modes with `proves_fix`: `require`, `warn`
    or `skip`. `require` unless set."""
    red_base: RedBase | None = None
    """Action on checks that are red on the base and stay red in the same way: `ask` a person before delivery, `deliver`, or
    `abort` before any agent starts. `ask` unless set."""
    follow_up: FollowUp | None = None
    """Stay with the pull request: failed checks and comments become work. Off unless set."""
    parallel: _Count | None = None
    """Number of tasks that `podium run` with several tasks works on at the same time. 3 unless set."""
    test_integrity: TestIntegrity | None = None
    """Action when a change deletes, skips or weakens tests or checks. `require` sends it back once, then asks a person; `warn` names
    it in the pull request; `skip` compares nothing. `require` unless set."""
    intake: IntakeOptions | None = None
    """Issues that `podium intake` turns into runs: labels, allowed accounts, queue, lease."""


FLOW = PIPELINE = "pipeline"
BATCH = "batch"
"""The flow of several tasks."""
PROMPTS_FOLDER = "prompts"
_MAX_PROMPT_BYTES = 200_000

PLACEHOLDER = re.compile(r"\{\{\s*(\w+)\s*\}\}")
NONCE_SLOT = "{{nonce}}"
"""Stands in a prompt's examples for the word that proves an answer to be of its turn."""
PLACEHOLDERS = ("inputs", "task", "document", "verification", "feat", "round", "checks", "nonce")
"""Placeholders that a prompt may have."""


def pipeline_spec(configuration: Configuration) -> PipelineSpec:
    """Load the shipped stages with the changes of podium.yaml. Raises `ConfigInvalid` with file and line."""
    merged = _over(_shipped(), flow_options(configuration, FLOW))
    try:
        return PipelineSpec.model_validate(merged)
    except ValidationError as error:
        raise _located(configuration, error) from None


@cache
def _shipped() -> Json:
    text = (files("podium.jobs.pipeline") / "pipeline.yaml").read_text()
    shipped: Json = yaml.safe_load(text)
    return shipped


def pipeline_prompts(configuration: Configuration, spec: PipelineSpec) -> dict[str, str]:
    """The words for every stage; a file of the project's own goes before the one that ships."""
    own = {name: stage.prompt or name for name, stage in spec.stages.items()}
    in_modes = [pair for mode in spec.modes for pair in spec.mode(mode).prompts.items()]
    names = {*own.values(), *(name for _, name in in_modes), "triage"}
    folders = configuration.folders
    texts = {name: _prompt(name, folders.state, folders.project) for name in sorted(names)}
    for stage, name in in_modes:
        # Who has words of their own for a stage means them in every mode.
        if _is_own(own[stage], folders.state) and not _is_own(name, folders.state):
            texts[name] = texts[own[stage]]
    return texts


def _is_own(name: str, state: Path) -> bool:
    return name.endswith(".md") or (state / PROMPTS_FOLDER / f"{name}.md").is_file()


def _prompt(name: str, state: Path, project: Path) -> str:
    """A name with `.md` is a file of the project, which everybody who clones it has."""
    if name.endswith(".md"):
        return _own_prompt(project / name)
    file = state / PROMPTS_FOLDER / f"{name}.md"
    if file.is_file():
        return _own_prompt(file)
    shipped = files("podium.jobs.pipeline") / "prompts" / f"{name}.md"
    if not shipped.is_file():
        raise BadInput(
            f"there is no prompt {name!r}; write it to {str(file)!r}, or name a file of the project: "
            f"`prompt: prompts/{name}.md`"
        )
    return shipped.read_text("utf-8")


def _own_prompt(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            content = opened.read(_MAX_PROMPT_BYTES + 1)
        text = content.decode("utf-8")
    except OSError as error:
        raise BadInput(f"{str(file)!r} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadInput(f"{str(file)!r} is not valid UTF-8; save it as UTF-8") from None
    if len(content) > _MAX_PROMPT_BYTES:
        raise BadInput(f"{str(file)!r} is longer than {_MAX_PROMPT_BYTES} bytes; shorten it")
    if not text.strip():
        raise BadInput(f"{str(file)!r} is empty; write the prompt, or remove the file")
    unknown = set(PLACEHOLDER.findall(text)) - set(PLACEHOLDERS)
    if unknown:
        placeholders = ", ".join(PLACEHOLDERS)
        raise BadInput(
            f"{str(file)!r}: unknown placeholder {{{{{min(unknown)}}}}}; placeholders: {placeholders}"
        )
    return text


def _over(shipped: dict[str, Json], options: dict[str, Json]) -> dict[str, Json]:
    merged = {**shipped, **{key: value for key, value in options.items() if value is not None}}
    merged["modes"] = {**shipped["modes"], **(options.get("modes") or {})}
    stages: dict[str, Json] = dict(shipped["stages"])
    for name, change in (options.get("stages") or {}).items():
        overrides = {key: value for key, value in change.items() if value is not None}
        stages[name] = {**stages.get(name, {}), **overrides}
    merged["stages"] = stages
    return merged


def _located(configuration: Configuration, error: ValidationError) -> ConfigInvalid:
    """The faults at the places in podium.yaml where they can be mended."""
    owners = [layer for layer in configuration.layers if FLOW in layer.settings.flows]
    if not owners:
        raise error
    located = owners[-1].located
    problems: list[ConfigProblem] = []
    for detail in error.errors(include_url=False):
        message = str(detail["msg"]).removeprefix("Value error, ")
        path = ("flows", FLOW, *detail["loc"])
        if not detail["loc"]:
            path = ("flows", FLOW, *message.split(": ")[:-1])
        problems.append(located.problem(path, message))
    return ConfigInvalid(located.file, problems)
