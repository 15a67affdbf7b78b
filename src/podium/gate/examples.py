"""Tries rules on the examples that stand beside them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from podium.domain.gating import Access, Call, Effect, GateContext, PathUse, Tier, ToolSpec
from podium.gate.facts import Facts, gather
from podium.gate.places import resolve
from podium.gate.policy import Example, Rule
from podium.gate.rules import CompiledRule
from podium.gate.shell import split_command

_ROOT = "/workspace"
_MOMENT = datetime(2000, 1, 1, tzinfo=UTC)


def wrong_examples(rule: Rule, compiled: CompiledRule) -> Iterator[tuple[str, int, str]]:
    """Examples that turn out otherwise than the rule says: list, index, what is wrong."""
    for at, example in enumerate(rule.match):
        if not _fits(rule, compiled, example):
            yield "match", at, f"should fit {_shown(example)} and does not"
    for at, example in enumerate(rule.not_match):
        if _fits(rule, compiled, example):
            yield "not_match", at, f"should not fit {_shown(example)} and does"


def _fits(rule: Rule, compiled: CompiledRule, example: Example) -> bool:
    """An allow rule must fit every command of a line, any other just one of them."""
    facts = example_facts(_completed(rule, example))
    if facts.refusal is not None or not compiled.means_tool(facts.call.tool):
        return False
    answers = [compiled.fits(facts, use) for use in facts.uses or (None,)]
    return all(answers) if rule.decision is Effect.ALLOW else any(answers)


def _completed(rule: Rule, example: Example) -> Example:
    """What the example leaves open is as the rule wants it."""
    changes: dict[str, Any] = {}
    if example.mode is None and rule.modes:
        changes["mode"] = rule.modes[0]
    if example.confined is None:
        changes["confined"] = bool(rule.confined)
    if example.network is None and rule.network:
        changes["network"] = rule.network[0]
    return example.model_copy(update=changes) if changes else example


def example_facts(example: Example) -> Facts:
    """The call that an example describes, read as the gate reads calls."""
    split = split_command(example.command) if example.command else None
    call = Call(
        run_id="example",
        step_key="example",
        index=0,
        tool=example.tool,
        arguments={"command": example.command, **example.arguments}
        if example.command
        else example.arguments,
        paths=tuple(_paths(example)),
        commands=split.commands if split else (),
        undecidable=split.undecidable if split else "",
        role=example.role,
    )
    tool = ToolSpec(
        name=example.tool, tier=Tier.T0, command_argument="command" if example.command else None
    )
    context = GateContext(
        tool=tool,
        mode=example.mode or "supervised",
        root=_ROOT,
        confined=bool(example.confined),
        network=example.network or "open",
        hosts=example.hosts,
        now=_MOMENT,
    )
    return gather(call, context)


def _paths(example: Example) -> Iterator[PathUse]:
    uses = (
        (Access.READ, example.reads),
        (Access.WRITE, example.writes),
        (Access.DELETE, example.deletes),
    )
    for access, words in uses:
        for word in words:
            argument = next(
                (name for name, value in example.arguments.items() if value == word), "path"
            )
            yield PathUse(argument=argument, given=word, real=resolve(word, _ROOT), access=access)


def _shown(example: Example) -> str:
    if example.command:
        return repr(example.command)
    return repr(example.model_dump(mode="json", exclude_defaults=True))
