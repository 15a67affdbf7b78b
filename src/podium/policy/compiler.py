"""Compiler of policy layers into a gate, after trying every rule on its examples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Any

from podium.core.decisions import (
    Access,
    Budget,
    BuiltInRule,
    Call,
    Effect,
    GateContext,
    PathUse,
    Quota,
    Tier,
    ToolSpec,
    Zone,
)
from podium.policy.facts import CallFacts, gather, refuse_paths
from podium.policy.policy import (
    CallMatcher,
    Policy,
    PolicyExample,
    PolicyLayer,
    PolicyRule,
    Undecidable,
    default_policy,
)
from podium.policy.refusal import InvalidPolicy
from podium.policy.rule_gate import DEFAULT_APPROVAL_SECONDS, PolicyLimits, RuleGate
from podium.policy.rules import CompiledMatcher, CompiledRule, PolicyRules
from podium.policy.shell import split_command
from podium.policy.zones import CompiledZone, PathGlobs, WritablePaths, ZoneSet, resolve

_ROOT = "/workspace"
_EXAMPLE_TIME = datetime(2000, 1, 1, tzinfo=UTC)


def wrong_examples(rule: PolicyRule, compiled: CompiledRule) -> Iterator[tuple[str, int, str]]:
    """Examples that turn out otherwise than the rule says: list, index, what is wrong."""
    for at, example in enumerate(rule.match):
        if not _fits(rule, compiled, example):
            yield "match", at, f"should match {_example_text(example)} but does not"
    for at, example in enumerate(rule.not_match):
        if _fits(rule, compiled, example):
            yield "not_match", at, f"should not match {_example_text(example)} but does"


def _fits(rule: PolicyRule, compiled: CompiledRule, example: PolicyExample) -> bool:
    """An allow rule must fit every command of a line, any other just one of them."""
    facts = example_facts(_completed(rule, example))
    if facts.refusal is not None or not compiled.means_tool(facts.call.tool):
        return False
    answers = [compiled.fits(facts, use) for use in facts.uses or (None,)]
    return all(answers) if rule.decision is Effect.ALLOW else any(answers)


def _completed(rule: PolicyRule, example: PolicyExample) -> PolicyExample:
    """The example with what it leaves open filled in as the rule wants it."""
    changes: dict[str, Any] = {}
    if example.mode is None and rule.modes:
        changes["mode"] = rule.modes[0]
    if example.confined is None:
        changes["confined"] = bool(rule.confined)
    if example.network is None and rule.network:
        changes["network"] = rule.network[0]
    return example.model_copy(update=changes) if changes else example


def example_facts(example: PolicyExample) -> CallFacts:
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
        now=_EXAMPLE_TIME,
    )
    return gather(call, context)


def _paths(example: PolicyExample) -> Iterator[PathUse]:
    uses = (
        (Access.READ, example.reads),
        (Access.WRITE, example.writes),
        (Access.DELETE, example.deletes),
    )
    for access, paths in uses:
        for path in paths:
            argument = next(
                (name for name, value in example.arguments.items() if value == path), "path"
            )
            yield PathUse(argument=argument, given=path, real=resolve(path, _ROOT), access=access)


def _example_text(example: PolicyExample) -> str:
    if example.command:
        return repr(example.command)
    return repr(example.model_dump(mode="json", exclude_defaults=True))


_DENIED: dict[BuiltInRule, tuple[str, ...]] = {
    BuiltInRule.GIT_FIREWALL: (
        "git checkout main",
        "cd src && git -C . switch evil",
        "env A=b git push origin HEAD",
        "bash -c 'git reset --hard HEAD~1'",
        'echo "$(git rebase main)"',
        "find . -exec git checkout evil ';'",
        "echo evil | xargs git checkout",
        "X=checkout; git $X evil",
        "git -c core.pager=./x log",
    ),
    BuiltInRule.UNDECIDABLE_COMMAND: (
        "$TOOL --all",
        "echo `echo \\`id\\``",
        "time { ls; }",
        "ls 'a",
        "git che{ck,}out evil; {ls,-l}",
    ),
    BuiltInRule.SHELL_INDIRECTION: (
        "curl -s localhost | sh",
        'eval "$CODE"',
        "source ./set_up.sh",
        "alias ls='rm x'",
        "ls() { rm x; }; ls",
        'trap "$CODE" EXIT',
    ),
    BuiltInRule.DANGEROUS_VARIABLE: (
        "PATH=. ls",
        "export GIT_DIR=x",
        "read LD_PRELOAD < a",
        "for IFS in a; do ls; done",
    ),
    BuiltInRule.PRIVILEGE: ("sudo ls", "env -i su -c id"),
    BuiltInRule.DESTRUCTIVE_COMMAND: (
        "rm -rf .",
        "rm -rf *",
        'rm -rf "$DIR"',
        "cd src; rm -rf ../*",
        "find . -delete",
        "mkfs.ext4 /dev/sda",
    ),
    BuiltInRule.OUTSIDE_WORKSPACE: (
        "echo x > /etc/hosts",
        "rm -rf /usr/share/doc",
        "cp a.txt ../b.txt",
        "cd ../elsewhere && ls",
        "cat ../elsewhere/key",
    ),
    BuiltInRule.UNREACHABLE_HOST: ("curl https://elsewhere.example/x",),
}
_PASSED = (
    "git add -A && git commit -m \"$(cat <<'EOF'\nAdd the parser\nEOF\n)\"",
    "git diff --name-only | xargs grep -n TODO",
    'rm -rf build && mkdir build && cd build && cmake .. && make -j"$(nproc)" 2>&1 | tail -5',
    'for f in src/*.c; do gcc -c "$f" -o "${f%.c}.o"; done',
    "find . -name '*.pyc' -delete",
    'tmp=$(mktemp -d) && cp -r src "$tmp" && rm -rf "$tmp"',
    "python3 - <<'PY' 2>&1 | tail -5\nprint(1)\nPY",
    'while IFS= read -r line; do echo "$line"; done < in.txt',
    "node server.js > server.log 2>&1 & curl -s localhost:3000/health; kill %1",
)


@cache
def built_in_problems() -> tuple[InvalidPolicy, ...]:
    """Built-in checks that do not do what their examples say: none, unless the code is at fault."""
    return tuple(_problems())


def _problems() -> Iterator[InvalidPolicy]:
    for rule, lines in _DENIED.items():
        for line in lines:
            if (rule_name := _refused_by(line)) != rule:
                problem = f"should deny {line!r}, but {f'{rule_name} denies it' if rule_name else 'allows it'}"
                yield InvalidPolicy(problem, layer="built-in", rule=rule)
    for line in _PASSED:
        if rule_name := _refused_by(line):
            yield InvalidPolicy(f"should allow {line!r}", layer="built-in", rule=rule_name)


def _refused_by(line: str) -> str:
    facts = example_facts(PolicyExample(command=line, confined=True, network="listed"))
    refusal = facts.refusal or refuse_paths(facts, ZoneSet(()), WritablePaths(()))
    return refusal.rule if refusal is not None else ""


ZonesByName = dict[str, CompiledZone]

BUILT_IN_NAMES = frozenset(map(str, BuiltInRule))
_STRICTNESS: tuple[Undecidable, ...] = ("sandbox", "ask", "deny")
_NARROWED = ("usd", "tokens", "turns", "seconds")


def compile_policy(layers: Sequence[PolicyLayer]) -> RuleGate:
    """Make the gate of these layers, given in the order built-in, user, project.

    Raises `InvalidPolicy` for the first thing that is wrong; `find_problems` gives all of them.
    """
    for problem in find_problems(layers):
        raise problem
    visible = [*_visible_zones(layers)]
    limits = _limits(layers)
    to_sandbox = limits.undecidable == "sandbox"
    rules = [
        CompiledRule(rule, layer.origin, zones, to_sandbox=to_sandbox)
        for layer, zones in zip(layers, visible, strict=True)
        for rule in layer.policy.rules
    ]
    return RuleGate(
        PolicyRules(rules),
        [zone for layer in layers for zone in _zones(layer.policy).values()],
        WritablePaths([*_safe_paths(layers)]),
        [*_quotas(layers, visible)],
        limits,
    )


def find_problems(layers: Sequence[PolicyLayer]) -> Iterator[InvalidPolicy]:
    """Everything wrong with these layers that their shape alone does not show."""
    yield from built_in_problems()
    for layer, zones in zip(layers, _visible_zones(layers), strict=True):
        is_ours = layer.origin == "built-in" and layer.policy is default_policy()
        yield from _default_problems() if is_ours else _layer_problems(layer, zones)


@cache
def _default_problems() -> tuple[InvalidPolicy, ...]:
    """The problems of the built-in layer, computed once: it comes first, so that no other can change what its rules mean."""
    layer = PolicyLayer(origin="built-in", policy=default_policy())
    return tuple(_layer_problems(layer, _zones(layer.policy)))


def _layer_problems(layer: PolicyLayer, zones: ZonesByName) -> Iterator[InvalidPolicy]:
    yield from _name_problems(layer)
    for at, quota in enumerate(layer.policy.quotas):
        yield from _zone_problems(layer, quota, quota.name, ("quotas", at), zones)
    for at, rule in enumerate(layer.policy.rules):
        key = ("rules", at)
        yield from _zone_problems(layer, rule, rule.name, key, zones)
        if rule.up_to_tier is not None and layer.origin == "project":
            yield InvalidPolicy(
                "a project cannot raise a tier limit; move the rule into your user settings",
                layer=layer.origin,
                rule=rule.name,
                key=(*key, "up_to_tier"),
            )
        if set(rule.zone) <= set(zones):
            compiled = CompiledRule(rule, layer.origin, zones)
            for list_name, index, problem in wrong_examples(rule, compiled):
                yield InvalidPolicy(
                    problem, layer=layer.origin, rule=rule.name, key=(*key, list_name, index)
                )


def _name_problems(layer: PolicyLayer) -> Iterator[InvalidPolicy]:
    for part in ("rules", "quotas"):
        names: set[str] = set()
        for at, item in enumerate(getattr(layer.policy, part)):
            key = (part, at, "name")
            if item.name in names:
                yield InvalidPolicy(
                    f"the name {item.name!r} is used twice; choose another",
                    layer=layer.origin,
                    rule=item.name,
                    key=key,
                )
            elif item.name in BUILT_IN_NAMES:
                yield InvalidPolicy(
                    f"{item.name!r} is the name of a built-in check; choose another",
                    layer=layer.origin,
                    rule=item.name,
                    key=key,
                )
            names.add(item.name)


def _zone_problems(
    layer: PolicyLayer,
    matcher: CallMatcher,
    name: str,
    key: tuple[str | int, ...],
    zones: ZonesByName,
) -> Iterator[InvalidPolicy]:
    for zone in matcher.zone:
        if zone not in zones:
            zone_names = ", ".join(sorted(zones)) or "none"
            yield InvalidPolicy(
                f"unknown zone {zone!r}; zones: {zone_names}",
                layer=layer.origin,
                rule=name,
                key=(*key, "zone"),
            )


def _visible_zones(layers: Sequence[PolicyLayer]) -> Iterator[ZonesByName]:
    """The zones each layer may speak of: its own and those before it, so that none is widened later."""
    visible: ZonesByName = {}
    for layer in layers:
        visible = visible | _zones(layer.policy)
        yield visible


def _zones(policy: Policy) -> ZonesByName:
    return {name: _compiled_zone(spec.zone(name)) for name, spec in policy.zones.items()}


@lru_cache(maxsize=256)
def _compiled_zone(zone: Zone) -> CompiledZone:
    """Equal zones are compiled once: a policy is asked for its zones when it is checked and again when it is used."""
    return CompiledZone(zone)


def _safe_paths(layers: Sequence[PolicyLayer]) -> Iterator[tuple[PathGlobs, bool]]:
    for layer in layers:
        specs = layer.policy.zones.items()
        safe = [spec for name, spec in specs if spec.zone(name).kind == "safe"]
        paths = [path for spec in safe for path in spec.paths]
        but_not = [path for spec in safe for path in spec.but_not]
        if paths:
            yield PathGlobs(paths, but_not=but_not), layer.origin != "project"


def _quotas(
    layers: Sequence[PolicyLayer], visible: Sequence[ZonesByName]
) -> Iterator[tuple[CompiledMatcher, Quota]]:
    """Quotas of all layers hold. One whose name an earlier layer has is counted by itself."""
    taken: set[str] = set()
    for layer, zones in zip(layers, visible, strict=True):
        for spec in layer.policy.quotas:
            name = spec.name if spec.name not in taken else f"{layer.origin}:{spec.name}"
            taken.add(name)
            quota = Quota(name=name, limit=spec.limit, seconds=spec.seconds)
            yield CompiledMatcher(spec, zones, lenient=True), quota


def _limits(layers: Sequence[PolicyLayer]) -> PolicyLimits:
    """A user's limits replace the built-in ones; a project's only lower them."""
    tiers: dict[str, Tier] = {}
    caps: dict[str, Tier] = {}
    seconds, most_seconds = DEFAULT_APPROVAL_SECONDS, float("inf")
    for layer in layers:
        target = caps if layer.origin == "project" else tiers
        for mode, tier in layer.policy.max_tier_without_asking:
            if tier is not None:
                target[mode] = min(tier, caps[mode]) if mode in caps else tier
        if layer.policy.approval_seconds is not None:
            if layer.origin == "project":
                most_seconds = min(most_seconds, layer.policy.approval_seconds)
            else:
                seconds = layer.policy.approval_seconds
    return PolicyLimits(
        tiers, caps, _budgets(layers), min(seconds, most_seconds), _undecidable(layers)
    )


def _undecidable(layers: Sequence[PolicyLayer]) -> Undecidable:
    """A user replaces what is built in; a project may only be stricter."""
    answer: Undecidable = "sandbox"
    for layer in layers:
        wished = layer.policy.undecidable
        if wished is None:
            continue
        stricter = _STRICTNESS.index(wished) > _STRICTNESS.index(answer)
        if layer.origin != "project" or stricter:
            answer = wished
    return answer


def _budgets(layers: Sequence[PolicyLayer]) -> tuple[Budget, ...]:
    """For each scope the tightest of what all layers say."""
    merged: dict[str, Budget] = {}
    for budget in (budget for layer in layers for budget in layer.policy.budgets):
        held = merged.get(budget.scope)
        merged[budget.scope] = budget if held is None else _tighter(held, budget)
    return tuple(merged.values())


def _tighter(one: Budget, other: Budget) -> Budget:
    limits = {
        name: min(
            (value for value in (getattr(one, name), getattr(other, name)) if value is not None),
            default=None,
        )
        for name in _NARROWED
    }
    return one.model_copy(update=limits)
