"""Compiled rules: tests over a call and its arguments, and the verdict of all layers together.

A test answers yes, no, or None when it cannot be made, such as a number range over a text. What
cannot be tested counts against the call: a deny or ask rule takes None for yes, an allow rule
for no. Of several values, a deny or ask rule needs one that fits, an allow rule needs all.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from podium.core.decisions import Effect
from podium.core.model import Json
from podium.policy.classification import CommandUse
from podium.policy.facts import CallFacts
from podium.policy.policy import (
    ArgumentMatch,
    CallMatcher,
    CommandPatterns,
    NamePatterns,
    Origin,
    PolicyRule,
    command_patterns,
    text_glob,
)
from podium.policy.zones import CompiledZone, PathGlobs, TouchedPath, check_glob

_MAX_TEXT = 10_000
"""Longer texts are not put to regular expressions."""
_MISSING = object()
Test = Callable[[Json], bool | None]


class ArgumentTest:
    """One `arguments` entry of a rule."""

    def __init__(self, name: str, match: ArgumentMatch, *, lenient: bool) -> None:
        self._name = name
        self._present = match.present
        self._lenient = lenient
        """True for deny and ask: one value that fits, or cannot be tested, is enough."""
        self._paths = _path_globs(match.glob)
        self._tests = tuple(_tests(match))
        self._text_tests = (
            (_text_glob_test(match.glob), *self._tests) if match.glob else self._tests
        )

    def fits(self, facts: CallFacts) -> bool:
        value = look_up(facts.call.arguments, self._name)
        if value is _MISSING or self._present is False:
            return value is _MISSING and self._present is False
        tests = self._text_tests
        if self._paths is not None:
            # A path argument is compared by its real path, whatever its spelling.
            real = facts.real_paths.get(self._name)
            if real:
                tests, root = self._tests, facts.context.root
                if not self._agreed([self._paths.covers(path, root) for path in real]):
                    return False
        if not tests:
            return True
        items = value if isinstance(value, (list, tuple)) and value else (value,)
        return self._agreed([_together(tests, item) for item in items])

    def _agreed(self, answers: Sequence[bool | None]) -> bool:
        if self._lenient:
            return True in answers or None in answers
        return False not in answers and None not in answers


def _tests(match: ArgumentMatch) -> Iterator[Test]:
    if "equals" in match.model_fields_set:
        yield partial(_same, match.equals)
    if match.one_of is not None:
        yield partial(_same_as_one, match.one_of)
    if match.regex is not None:
        yield partial(_fits_regex, re.compile(match.regex))
    if match.min is not None or match.max is not None:
        yield partial(_in_range, match.min, match.max)


def _together(tests: Sequence[Test], value: Json) -> bool | None:
    """All tests over one value: no beats unknown, unknown beats yes."""
    answers = [test(value) for test in tests]
    if False in answers:
        return False
    return None if None in answers else True


def look_up(arguments: Mapping[str, Json], name: str) -> Json:
    """The argument of that name, or inside objects along its dots."""
    if name in arguments:
        return arguments[name]
    value: Json = arguments
    for part in name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return _MISSING
        value = value[part]
    return value


def _path_globs(glob: str | None) -> PathGlobs | None:
    try:
        return PathGlobs([check_glob(glob)]) if glob is not None else None
    except ValueError:
        return None


def _text_glob_test(glob: str) -> Test:
    fits = text_glob(glob).fullmatch

    def test(value: Json) -> bool | None:
        if not isinstance(value, str) or ".." in value.split("/"):
            return None  # As a path it may lead anywhere.
        return fits(value) is not None

    return test


def _same(expected: Json, value: Json) -> bool:
    """Equality that tells `true` from 1."""
    return isinstance(expected, bool) is isinstance(value, bool) and bool(expected == value)


def _same_as_one(options: Sequence[Json], value: Json) -> bool:
    return any(_same(option, value) for option in options)


def _fits_regex(regex: re.Pattern[str], value: Json) -> bool | None:
    if not isinstance(value, str) or len(value) > _MAX_TEXT:
        return None
    return regex.fullmatch(value) is not None


def _in_range(least: float | None, most: float | None, value: Json) -> bool | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isnan(value):
        return None
    return (least is None or value >= least) and (most is None or value <= most)


class CompiledMatcher:
    """Says whether a call is meant. `lenient` matchers, of denials, asks and quotas, take doubt for yes."""

    def __init__(
        self,
        matcher: CallMatcher,
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

    def fits(self, facts: CallFacts, use: CommandUse | None) -> bool:
        """Tell whether the call is meant; `use` is the one of its commands that is looked at."""
        call, context = facts.call, facts.context
        return (
            (self._confined is None or context.confined is self._confined)
            and (not self._networks or (context.confined and context.network in self._networks))
            and (self._takes_open or use is None or not use.open)
            and (not self._modes or context.mode in self._modes)
            and (self._roles is None or self._roles.fit(call.role))
            and (not self._about_commands or (use is not None and self._fits_command(use)))
            and (not self._arguments or self._fits_arguments(facts))
            and (not (self._zones or self._access) or self._fits_paths(facts, use))
        )

    def _fits_arguments(self, facts: CallFacts) -> bool:
        return all(test.fits(facts) for test in self._arguments)

    def _fits_command(self, use: CommandUse) -> bool:
        if self._kinds and not self._fits_kind(use):
            return False
        if self._commands is not None and not self._fits_patterns(self._commands, use):
            return False
        return self._but_not is None or not self._but_not.fit(use.argv)

    def _fits_kind(self, use: CommandUse) -> bool:
        return use.kind in self._kinds or (self._lenient and use.perhaps in self._kinds)

    def _fits_patterns(self, patterns: CommandPatterns, use: CommandUse) -> bool:
        if not self._lenient:
            return patterns.fit(use.argv)
        fit = patterns.may_fit if use.computed else patterns.fit
        return any(map(fit, use.readings))

    def _fits_paths(self, facts: CallFacts, use: CommandUse | None) -> bool:
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

    def _fits_touch(self, touch: TouchedPath, root: str) -> bool:
        doubtful = self._lenient and touch.access is None
        if self._access and touch.access not in self._access and not doubtful:
            return False
        if not self._zones:
            return True
        if self._lenient:
            return any(zone.holds(touch, root) for zone in self._zones)
        return all(
            any(zone.path_globs.covers(path, root) for zone in self._zones) for path in touch.paths
        )


class CompiledRule(CompiledMatcher):
    """A rule of one layer."""

    def __init__(
        self,
        rule: PolicyRule,
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
class RuleVerdict:
    """The verdict of all layers' rules about a call or one of its commands."""

    rule: CompiledRule
    approvers: tuple[str, ...] = ()

    @property
    def effect(self) -> Effect:
        return self.rule.effect


class PolicyRules:
    """The rules of all layers, in order: built-in, user, project."""

    def __init__(self, rules: Iterable[CompiledRule]) -> None:
        self._rules = tuple(rules)
        self._by_tool: dict[str, tuple[tuple[CompiledRule, ...], tuple[CompiledRule, ...]]] = {}

    def judge(self, facts: CallFacts) -> list[RuleVerdict | None]:
        """A verdict for each command of the call, or one for a call that starts none.

        None: no rule speaks about it.
        """
        denying, others = self._for_tool(facts.call.tool)
        uses: Sequence[CommandUse | None] = facts.uses or (None,)
        return [self._verdict(facts, use, denying, others) for use in uses]

    def _for_tool(self, tool: str) -> tuple[tuple[CompiledRule, ...], tuple[CompiledRule, ...]]:
        rules = self._by_tool.get(tool)
        if rules is None:
            meant = [rule for rule in self._rules if rule.means_tool(tool)]
            rules = (
                tuple(rule for rule in meant if rule.effect is Effect.DENY),
                tuple(rule for rule in meant if rule.effect is not Effect.DENY),
            )
            self._by_tool[tool] = rules
        return rules

    @staticmethod
    def _verdict(
        facts: CallFacts,
        use: CommandUse | None,
        denying: Sequence[CompiledRule],
        others: Sequence[CompiledRule],
    ) -> RuleVerdict | None:
        for rule in denying:
            if rule.fits(facts, use):
                return RuleVerdict(rule)
        location: RuleVerdict | None = None
        answered: Origin | None = None
        for rule in others:
            if rule.origin != answered and rule.fits(facts, use):
                answered = rule.origin
                location = _weighed(location, rule)
        return location


def _weighed(location: RuleVerdict | None, rule: CompiledRule) -> RuleVerdict:
    """The verdict when a later layer speaks too. A user overrules the built-in policy.

    A project overrules it as well, but never the user's: against that it can only add questions.
    """
    if location is None:
        return RuleVerdict(rule, rule.approvals)
    both_ask = location.effect is Effect.ASK and rule.effect is Effect.ASK
    approvers = tuple(dict.fromkeys((*location.approvers, *rule.approvals))) if both_ask else ()
    firm = rule.origin == "project" and location.rule.origin == "user"
    if firm and not (location.effect is Effect.ALLOW and rule.effect is Effect.ASK):
        return RuleVerdict(location.rule, approvers or location.approvers)
    return RuleVerdict(rule, approvers or rule.approvals)
