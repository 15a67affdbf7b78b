"""Turns layers of policy into a gate, after trying every rule on its own examples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache

from podium.domain.gating import Budget, BuiltInRule, Quota, Tier, Zone
from podium.gate.built_in_examples import built_in_faults
from podium.gate.examples import wrong_examples
from podium.gate.limits import DEFAULT_APPROVAL_SECONDS, Limits
from podium.gate.places import CompiledZone, PlaceGlob, WritablePlaces
from podium.gate.policy import Matcher, Policy, PolicyLayer, Undecidable, default_policy
from podium.gate.refusing import PolicyFault
from podium.gate.rule_gate import RuleGate
from podium.gate.rules import CompiledMatcher, CompiledRule, RuleBook

ZonesByName = dict[str, CompiledZone]

BUILT_IN_NAMES = frozenset(map(str, BuiltInRule))
_STRICTNESS: tuple[Undecidable, ...] = ("sandbox", "ask", "deny")
_NARROWED = ("usd", "tokens", "turns", "seconds")


def compile_policy(layers: Sequence[PolicyLayer]) -> RuleGate:
    """Make the gate of these layers, given in the order built-in, user, project.

    Raises `PolicyFault` for the first thing that is wrong; `find_faults` gives all of them.
    """
    for fault in find_faults(layers):
        raise fault
    visible = [*_visible_zones(layers)]
    limits = _limits(layers)
    to_sandbox = limits.undecidable == "sandbox"
    rules = [
        CompiledRule(rule, layer.origin, zones, to_sandbox=to_sandbox)
        for layer, zones in zip(layers, visible, strict=True)
        for rule in layer.policy.rules
    ]
    return RuleGate(
        RuleBook(rules),
        [zone for layer in layers for zone in _zones(layer.policy).values()],
        WritablePlaces([*_safe_places(layers)]),
        [*_quotas(layers, visible)],
        limits,
    )


def find_faults(layers: Sequence[PolicyLayer]) -> Iterator[PolicyFault]:
    """Everything wrong with these layers that their shape alone does not show."""
    yield from built_in_faults()
    for layer, zones in zip(layers, _visible_zones(layers), strict=True):
        is_ours = layer.origin == "built-in" and layer.policy is default_policy()
        yield from _default_faults() if is_ours else _layer_faults(layer, zones)


@cache
def _default_faults() -> tuple[PolicyFault, ...]:
    """What is wrong with our own layer, tried once: it comes first, so that no other can change what its rules mean."""
    layer = PolicyLayer(origin="built-in", policy=default_policy())
    return tuple(_layer_faults(layer, _zones(layer.policy)))


def _layer_faults(layer: PolicyLayer, zones: ZonesByName) -> Iterator[PolicyFault]:
    yield from _name_faults(layer)
    for at, quota in enumerate(layer.policy.quotas):
        yield from _zone_faults(layer, quota, quota.name, ("quotas", at), zones)
    for at, rule in enumerate(layer.policy.rules):
        key = ("rules", at)
        yield from _zone_faults(layer, rule, rule.name, key, zones)
        if rule.up_to_tier is not None and layer.origin == "project":
            yield PolicyFault(
                "a project cannot lift a tier limit; put the rule into your own settings",
                layer=layer.origin,
                rule=rule.name,
                key=(*key, "up_to_tier"),
            )
        if set(rule.zone) <= set(zones):
            compiled = CompiledRule(rule, layer.origin, zones)
            for list_name, index, problem in wrong_examples(rule, compiled):
                yield PolicyFault(
                    problem, layer=layer.origin, rule=rule.name, key=(*key, list_name, index)
                )


def _name_faults(layer: PolicyLayer) -> Iterator[PolicyFault]:
    for part in ("rules", "quotas"):
        seen: set[str] = set()
        for at, item in enumerate(getattr(layer.policy, part)):
            key = (part, at, "name")
            if item.name in seen:
                yield PolicyFault(
                    f"the name {item.name!r} stands there twice; choose another",
                    layer=layer.origin,
                    rule=item.name,
                    key=key,
                )
            elif item.name in BUILT_IN_NAMES:
                yield PolicyFault(
                    f"{item.name!r} is the name of a built-in check; choose another",
                    layer=layer.origin,
                    rule=item.name,
                    key=key,
                )
            seen.add(item.name)


def _zone_faults(
    layer: PolicyLayer,
    matcher: Matcher,
    name: str,
    key: tuple[str | int, ...],
    zones: ZonesByName,
) -> Iterator[PolicyFault]:
    for zone in matcher.zone:
        if zone not in zones:
            known = ", ".join(sorted(zones)) or "none"
            yield PolicyFault(
                f"there is no zone {zone!r}; zones: {known}",
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


def _safe_places(layers: Sequence[PolicyLayer]) -> Iterator[tuple[PlaceGlob, bool]]:
    for layer in layers:
        specs = layer.policy.zones.items()
        safe = [spec for name, spec in specs if spec.zone(name).kind == "safe"]
        paths = [path for spec in safe for path in spec.paths]
        but_not = [path for spec in safe for path in spec.but_not]
        if paths:
            yield PlaceGlob(paths, but_not=but_not), layer.origin != "project"


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


def _limits(layers: Sequence[PolicyLayer]) -> Limits:
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
    return Limits(tiers, caps, _budgets(layers), min(seconds, most_seconds), _undecidable(layers))


def _undecidable(layers: Sequence[PolicyLayer]) -> Undecidable:
    """A user replaces what is built in; a project may only be stricter."""
    said: Undecidable = "sandbox"
    for layer in layers:
        wished = layer.policy.undecidable
        if wished is None:
            continue
        stricter = _STRICTNESS.index(wished) > _STRICTNESS.index(said)
        if layer.origin != "project" or stricter:
            said = wished
    return said


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
