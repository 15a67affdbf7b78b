"""Which step of a script answers a request."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from podium.testing.modelserver.ask import Ask
from podium.testing.modelserver.script import Rule, Script, Step


@dataclass(frozen=True)
class Match:
    """The step, and what the log calls its rule."""

    rule: str
    number: int
    """Counted from 0."""
    step: Step


class Matcher:
    """Finds steps. Remembers nothing but how often the rules with `each_time` were asked."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._asked: Counter[str] = Counter()

    def match(self, ask: Ask) -> Match:
        """The step for this request; a step that explains itself where no rule fits."""
        for place, rule in enumerate(self._script.rules):
            if _fits(rule, ask):
                return self._step(rule.name or rule.marker or f"rule {place + 1}", rule, ask)
        if self._script.default is not None:
            return self._step(self._script.default.name or "default", self._script.default, ask)
        return Match("", 0, Step(text=self._lost_words(ask)))

    def _step(self, name: str, rule: Rule, ask: Ask) -> Match:
        number = self._asked[name] if rule.each_time else _answered_steps(rule, ask)
        self._asked[name] += 1
        if number < len(rule.steps):
            return Match(name, number, _quoting(rule, ask, rule.steps[number]))
        last = rule.steps[-1]
        if last.call_count or last.payload is not None:
            # Said again, a call would keep an agent in a circle for ever.
            last = Step(text=f"The script has {len(rule.steps)} steps for {name!r}; all are done.")
        return Match(name, number, _quoting(rule, ask, last))

    def _lost_words(self, ask: Ask) -> str:
        markers = ", ".join(self._script.markers) or "none"
        marker = f"the marker SCRIPT:{ask.marker}" if ask.marker else "no marker SCRIPT:<name>"
        return (
            f"No rule of the model server's script fits this request. It has {marker}, protocol "
            f"{ask.protocol!r}, model {ask.model!r}, and its newest prompt begins {ask.prompt[:80]!r}. "
            f"Markers in the script: {markers}. Add a rule, or a `default`."
        )


def _fits(rule: Rule, ask: Ask) -> bool:
    return (
        (not rule.marker or rule.marker == ask.marker)
        and rule.protocol in (None, ask.protocol)
        and rule.offers_tools in (None, bool(ask.tools))
        and re.search(rule.model, ask.model) is not None
        and re.search(rule.when, ask.prompt) is not None
    )


def _quoting(rule: Rule, ask: Ask, step: Step) -> Step:
    """The step with `{{name}}` in its words and payload replaced by what that group of `when` found."""
    found = re.search(rule.when, ask.prompt)
    groups = found.groupdict("") if found else {}
    if not groups:
        return step
    words = {"text": step.text, "then": step.then, "payload": step.payload}
    return step.model_copy(update=_filled(words, groups))


def _filled(value: Any, groups: Mapping[str, str]) -> Any:
    """The value with the groups in its texts, however deep. A prompt may hold anything, quotes too."""
    if isinstance(value, str):
        for name, found in groups.items():
            value = value.replace(f"{{{{{name}}}}}", found)
        return value
    if isinstance(value, list):
        return [_filled(each, groups) for each in value]
    if isinstance(value, dict):
        return {key: _filled(each, groups) for key, each in value.items()}
    return value


def _answered_steps(rule: Rule, ask: Ask) -> int:
    """How many steps have all their tool results. A program that asks again gets the same step."""
    results = ask.results_since_marker() if rule.marker else ask.results_since_prompt()
    for number, step in enumerate(rule.steps):
        wanted = max(1, step.call_count)
        if results < wanted:
            return number
        results -= wanted
    return len(rule.steps) + results
