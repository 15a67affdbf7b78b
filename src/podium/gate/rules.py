"""Rules, compiled: does one fit a call, and what do all layers together say?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from podium.domain.gating import Effect
from podium.gate.arguments import ArgumentTest
from podium.gate.classify import CommandUse
from podium.gate.facts import Facts
from podium.gate.patterns import CommandPatterns, NamePatterns, command_patterns
from podium.gate.places import CompiledZone, Touch
from podium.gate.policy import Matcher, Origin, Rule


class CompiledMatcher:
    """Says whether a call is meant. `lenient` matchers, of denials, asks and quotas, take doubt for yes."""

    def __init__(
        self,
        matcher: Matcher,
        zones: Mapping[str, CompiledZone],
        *,
        lenient: bool,
        to_sandbox: bool = True,
    ) -> None:
        self._lenient = lenient
        self._confined = matcher.confined
        self._networks = frozenset(matcher.network)
        # What a policy does not leave to the sandbox is judged as if there were none.
        self._takes_open = to_sandbox or lenient or not matcher.confined
        self._tools = NamePatterns(matcher.tool or ("*",))
        self._about_commands = bool(matcher.command or matcher.kind)
        self._commands = command_patterns(matcher.command) if matcher.command else None
        self._but_not = command_patterns(matcher.but_not) if matcher.but_not else None
        self._kinds = frozenset(matcher.kind)
        self._arguments = tuple(
            ArgumentTest(name, match, lenient=lenient) for name, match in matcher.arguments.items()
        )
        self._zones = tuple(zones[name] for name in matcher.zone)
        self._access = frozenset(matcher.access)
        self._modes = frozenset(matcher.modes)
        self._roles = NamePatterns(matcher.roles) if matcher.roles else None

    def means_tool(self, tool: str) -> bool:
        return self._tools.fit(tool)

    def fits(self, facts: Facts, use: CommandUse | None) -> bool:
        """Whether the call is meant; `use` is the one of its commands that is looked at."""
        call, context = facts.call, facts.context
        return (
            (self._confined is None or context.confined is self._confined)
            and (not self._networks or (context.confined and context.network in self._networks))
            and (self._takes_open or use is None or not use.open)
            and (not self._modes or context.mode in self._modes)
            and (self._roles is None or self._roles.fit(call.role))
            and (not self._about_commands or (use is not None and self._fits_command(use)))
            and (not self._arguments or self._fits_arguments(facts))
            and (not (self._zones or self._access) or self._fits_places(facts, use))
        )

    def _fits_arguments(self, facts: Facts) -> bool:
        return all(test.fits(facts) for test in self._arguments)

    def _fits_command(self, use: CommandUse) -> bool:
        if self._kinds and not self._fits_kind(use):
            return False
        if self._commands is not None and not self._fits_words(self._commands, use):
            return False
        return self._but_not is None or not self._but_not.fit(use.words)

    def _fits_kind(self, use: CommandUse) -> bool:
        return use.kind in self._kinds or (self._lenient and use.perhaps in self._kinds)

    def _fits_words(self, patterns: CommandPatterns, use: CommandUse) -> bool:
        if not self._lenient:
            return patterns.fit(use.words)
        fit = patterns.may_fit if use.computed else patterns.fit
        return any(map(fit, use.readings))

    def _fits_places(self, facts: Facts, use: CommandUse | None) -> bool:
        root = facts.context.root
        if self._lenient:
            named = use.touches if use is not None else ()
            return any(self._fits_touch(touch, root) for touch in (*facts.path_touches, *named))
        # What a command touches beyond the paths it names is not known: no allowing by place.
        return (
            not facts.starts_commands
            and bool(facts.path_touches)
            and all(self._fits_touch(touch, root) for touch in facts.path_touches)
        )

    def _fits_touch(self, touch: Touch, root: str) -> bool:
        doubtful = self._lenient and touch.access is None
        if self._access and touch.access not in self._access and not doubtful:
            return False
        if not self._zones:
            return True
        if self._lenient:
            return any(zone.holds(touch, root) for zone in self._zones)
        return all(
            any(zone.places.covers(path, root) for zone in self._zones) for path in touch.paths
        )


class CompiledRule(CompiledMatcher):
    """A rule of one layer."""

    def __init__(
        self,
        rule: Rule,
        origin: Origin,
        zones: Mapping[str, CompiledZone],
        *,
        to_sandbox: bool = True,
    ) -> None:
        lenient = rule.decision is not Effect.ALLOW
        super().__init__(rule, zones, lenient=lenient, to_sandbox=to_sandbox)
        self.name = rule.name
        self.origin = origin
        self.effect = rule.decision
        self.tier = rule.tier
        self.up_to_tier = rule.up_to_tier
        self.approvals = rule.approvals
        self.reason = rule.why or f"rule {rule.name!r} of the {origin} policy says {rule.decision}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the rules of all layers say about a call or one of its commands."""

    rule: CompiledRule
    approvers: tuple[str, ...] = ()

    @property
    def effect(self) -> Effect:
        return self.rule.effect


class RuleBook:
    """The rules of all layers, in order: built-in, user, project."""

    def __init__(self, rules: Iterable[CompiledRule]) -> None:
        self._rules = tuple(rules)
        self._by_tool: dict[str, tuple[tuple[CompiledRule, ...], tuple[CompiledRule, ...]]] = {}

    def judge(self, facts: Facts) -> list[Verdict | None]:
        """A verdict for each command of the call, or one for a call that starts none.

        None: no rule speaks about it.
        """
        denying, others = self._for_tool(facts.call.tool)
        uses: Sequence[CommandUse | None] = facts.uses or (None,)
        return [self._verdict(facts, use, denying, others) for use in uses]

    def _for_tool(self, tool: str) -> tuple[tuple[CompiledRule, ...], tuple[CompiledRule, ...]]:
        found = self._by_tool.get(tool)
        if found is None:
            meant = [rule for rule in self._rules if rule.means_tool(tool)]
            found = (
                tuple(rule for rule in meant if rule.effect is Effect.DENY),
                tuple(rule for rule in meant if rule.effect is not Effect.DENY),
            )
            self._by_tool[tool] = found
        return found

    @staticmethod
    def _verdict(
        facts: Facts,
        use: CommandUse | None,
        denying: Sequence[CompiledRule],
        others: Sequence[CompiledRule],
    ) -> Verdict | None:
        for rule in denying:
            if rule.fits(facts, use):
                return Verdict(rule)
        standing: Verdict | None = None
        answered: Origin | None = None
        for rule in others:
            if rule.origin != answered and rule.fits(facts, use):
                answered = rule.origin
                standing = _weighed(standing, rule)
        return standing


def _weighed(standing: Verdict | None, rule: CompiledRule) -> Verdict:
    """What holds when a later layer speaks too. A user overrules the built-in policy.

    A project overrules it as well, but never the user's: against that it can only add questions.
    """
    if standing is None:
        return Verdict(rule, rule.approvals)
    both_ask = standing.effect is Effect.ASK and rule.effect is Effect.ASK
    approvers = tuple(dict.fromkeys((*standing.approvers, *rule.approvals))) if both_ask else ()
    firm = rule.origin == "project" and standing.rule.origin == "user"
    if firm and not (standing.effect is Effect.ALLOW and rule.effect is Effect.ASK):
        return Verdict(standing.rule, approvers or standing.approvers)
    return Verdict(rule, approvers or rule.approvals)
