"""Trial of a policy: one call, or a file of cases with the decisions they should get."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import resources
from pathlib import Path

import yaml
from pydantic import Field, ValidationError

from podium.core.decisions import Call, Decision, Effect, GateContext
from podium.core.errors import BadArguments, BadInput, UnknownTool
from podium.core.model import FrozenModel, Json, NonEmpty
from podium.core.processes import NetworkPolicy
from podium.core.work import Mode
from podium.ports import Gate, Toolbox


def check_policy(
    gate: Gate,
    toolbox: Toolbox,
    tool: str,
    arguments: dict[str, Json],
    *,
    mode: str,
    root: str,
    now: datetime,
    confined: bool = False,
    network: NetworkPolicy = "open",
    hosts: tuple[str, ...] = (),
) -> Decision:
    """Judge a call as if it were the first of a fresh run: nothing spent, nothing approved.

    `confined`: as if the kernel kept what it starts to the workspace, with this network.
    Raises `BadArguments` when the arguments do not fit the tool.
    """
    specs = {spec.name: spec for spec in toolbox.specs()}
    try:
        call = toolbox.normalise(tool, arguments, run_id="check", step_key="check", index=0)
    except UnknownTool:
        # The gate has an answer to this as well, and it is the one a run would get.
        call = Call(run_id="check", step_key="check", index=0, tool=tool, arguments=arguments)
    context = GateContext(
        tool=specs.get(tool),
        mode=mode,
        root=root,
        confined=confined,
        holds_zones=confined,
        network=network,
        hosts=hosts,
        now=now,
    )
    return gate.decide(call, context)


MAX_CASES = 20_000


class PolicyCase(FrozenModel):
    """A command, and what the gate should say of it."""

    command: NonEmpty | tuple[NonEmpty, ...]
    """A shell line, or a program with its words."""
    decision: Effect
    rule: str = ""
    """Rule that should decide. Empty: any."""
    confined: bool = False
    network: NetworkPolicy = "open"
    hosts: tuple[str, ...] = ()
    mode: Mode | None = None
    """None: today's."""
    why: str = ""


class _Listed(FrozenModel):
    """Cases that have something in common. A text stands for a case with just that command."""

    defaults: dict[str, Json] = Field(default_factory=dict)
    cases: list[Json]


@dataclass(frozen=True, slots=True)
class Tried:
    """A case and what the gate really said."""

    case: PolicyCase
    decision: Effect
    rule: str
    reason: str

    @property
    def holds(self) -> bool:
        return self.decision is self.case.decision and self.case.rule in ("", self.rule)


def policy_cases(data: Json, source: str) -> tuple[PolicyCase, ...]:
    """The cases of a file: a list, or an object with `defaults` and `cases`.

    Raises `BadInput` that names the file and the number of the first case that is no case.
    """
    defaults: dict[str, Json] = {}
    if isinstance(data, dict):
        try:
            listed = _Listed.model_validate(data)
        except ValidationError as error:
            raise BadInput(f"{source}: {_problem_text(error)}") from None
        data, defaults = listed.cases, listed.defaults
    if not isinstance(data, list) or not data:
        raise BadInput(f"{source}: write a list of cases, each with `command` and `decision`")
    if len(data) > MAX_CASES:
        raise BadInput(f"{source}: {len(data)} cases; at most {MAX_CASES} are tried at once")
    return tuple(_case(item, defaults, f"{source}: case {at}") for at, item in enumerate(data, 1))


def _case(item: Json, defaults: dict[str, Json], location: str) -> PolicyCase:
    fields = {"command": item} if isinstance(item, str) else item
    if not isinstance(fields, dict):
        raise BadInput(f"{location}: write `command` and `decision`, or a string with a command")
    try:
        return PolicyCase.model_validate({**defaults, **fields})
    except ValidationError as error:
        raise BadInput(f"{location}: {_problem_text(error)}") from None


def _problem_text(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in first["loc"])
    return f"{key!r}: {first['msg']}"


def try_policy(
    gate: Gate,
    toolbox: Toolbox,
    cases: Sequence[PolicyCase],
    *,
    mode: str,
    root: str,
    now: datetime,
) -> Iterator[Tried]:
    """Each case with the gate's word, as if it were the first call of a fresh run. Nothing is started."""
    for case in cases:
        command = case.command if isinstance(case.command, str) else list(case.command)
        try:
            decision = check_policy(
                gate,
                toolbox,
                "run_command",
                {"command": command},
                mode=case.mode or mode,
                root=root,
                now=now,
                confined=case.confined,
                network=case.network,
                hosts=case.hosts,
            )
        except BadArguments as error:
            # What cannot become a call never runs, which is as good as a no.
            yield Tried(case, Effect.DENY, "bad-arguments", str(error))
            continue
        yield Tried(case, decision.effect, decision.rule, decision.reason)


_MAX_BYTES = 5_000_000


def shipped_cases() -> Iterator[tuple[str, Json]]:
    """The lists in `gate/shell/cases`, each with its name."""
    folder = resources.files("podium.policy.shell") / "cases"
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".yaml"):
            yield file.name, _parsed(file.read_text("utf-8"), file.name)


def read_yaml(path: Path) -> Json:
    """The content of a file. Raises `BadInput` that says what is wrong with it."""
    try:
        with path.open("rb") as file:
            raw = file.read(_MAX_BYTES + 1)
        if len(raw) > _MAX_BYTES:
            raise BadInput(f"{str(path)!r} is larger than {_MAX_BYTES} bytes; split the list")
        return _parsed(raw.decode("utf-8"), str(path))
    except OSError as error:
        raise BadInput(f"{str(path)!r} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadInput(f"{str(path)!r} is not valid UTF-8") from None


def _parsed(text: str, name: str) -> Json:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return yaml.load(text, Loader=loader)  # noqa: S506 - both loaders are safe ones
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        problem = " ".join(str(error).split())[:300]
        raise BadInput(f"{name!r} is not valid YAML: {problem}") from None
