"""A list of commands with the decisions that a policy is expected to give, tried on the gate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic import Field, ValidationError

from podium.domain.errors import BadArguments, BadInput
from podium.domain.gating import Effect
from podium.domain.launching import NetworkPolicy
from podium.domain.model import Json, NonEmpty, Noun
from podium.domain.terms import Mode
from podium.ports import Gate, Toolbox
from podium.usecases.check_policy import check_policy

MOST_CASES = 20_000


class PolicyCase(Noun):
    """A command, and what the gate should say of it."""

    command: NonEmpty | tuple[NonEmpty, ...]
    """A shell line, or a program with its words."""
    decision: Effect
    rule: str = ""
    """Which rule should decide. Empty: whichever."""
    confined: bool = False
    network: NetworkPolicy = "open"
    hosts: tuple[str, ...] = ()
    mode: Mode | None = None
    """None: today's."""
    why: str = ""


class _Listed(Noun):
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
            raise BadInput(f"{source}: {_in_words(error)}") from None
        data, defaults = listed.cases, listed.defaults
    if not isinstance(data, list) or not data:
        raise BadInput(f"{source}: write a list of cases, each with `command` and `decision`")
    if len(data) > MOST_CASES:
        raise BadInput(f"{source}: {len(data)} cases; at most {MOST_CASES} are tried at once")
    return tuple(_case(item, defaults, f"{source}: case {at}") for at, item in enumerate(data, 1))


def _case(item: Json, defaults: dict[str, Json], place: str) -> PolicyCase:
    given = {"command": item} if isinstance(item, str) else item
    if not isinstance(given, dict):
        raise BadInput(f"{place}: write `command` and `decision`, or a text for a command alone")
    try:
        return PolicyCase.model_validate({**defaults, **given})
    except ValidationError as error:
        raise BadInput(f"{place}: {_in_words(error)}") from None


def _in_words(error: ValidationError) -> str:
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
            said = check_policy(
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
        yield Tried(case, said.effect, said.rule, said.reason)
