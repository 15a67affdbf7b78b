"""Score of the fields read from a message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from podium.core.model import Json
from podium.core.packs import Pack, Skill
from podium.jobs.operator.bench.utterances import UtteranceCase
from podium.jobs.operator.models import IntentClassification, ToolIntent

_PUNCTUATION = " .!?;:\"'“”‘’`-"


def calls_of(
    intents: Iterable[ToolIntent], pack: Pack, context: Mapping[str, Json] | None = None
) -> list[ToolIntent]:
    """The intents with each skill as its tools, in order; a step for many elements is one call."""
    return [
        call
        for intent in intents
        for call in _calls(intent, pack.skill(intent.tool), context or {})
    ]


def _calls(
    intent: ToolIntent, skill: Skill | None, context: Mapping[str, Json]
) -> Iterator[ToolIntent]:
    if skill is None:
        yield intent
        return
    sources = {"message": intent.arguments, "context": context}
    for step in skill.steps:
        if all(_at(path, sources) for path in (step.when, step.each) if path):
            values = {name: _at(path, sources) for name, path in step.arguments.items()}
            arguments = {name: value for name, value in values.items() if value is not None}
            yield ToolIntent(tool=step.tool, arguments=arguments)


def _at(path: Json, value: Json) -> Json:
    """Look up `$message.NAME` or `$context.PATH`; None for values that are unknown before the run."""
    if not isinstance(path, str) or not path.startswith("$"):
        return None
    for part in path[1:].split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def fields_wrong(
    case: UtteranceCase, classification: IntentClassification, pack: Pack
) -> str | None:
    """Describe the fields that were read wrongly; None when all are right."""
    numbered = _numbered(
        _taken_from_results(calls_of(classification.wishes, pack, case.context), pack)
    )
    wrong = [
        f"{tool}.{name}: {numbered.get(tool, {}).get(name)!r} instead of {value!r}"
        for tool, fields in case.fields.items()
        for name, value in fields.items()
        if not same(value, numbered.get(tool, {}).get(name))
    ]
    if case.missing and set(case.missing) != set(classification.missing_evidence):
        asked = ", ".join(classification.missing_evidence) or "nothing"
        wrong.append(f"missing: {asked} instead of {', '.join(case.missing)}")
    return "; ".join(wrong) or None


def _numbered(calls: Sequence[ToolIntent]) -> dict[str, Mapping[str, Json]]:
    """Arguments by tool; the second call of a tool is `TOOL#2`."""
    counts: Counter[str] = Counter()
    numbered: dict[str, Mapping[str, Json]] = {}
    for call in calls:
        counts[call.tool] += 1
        number = counts[call.tool]
        numbered[call.tool if number == 1 else f"{call.tool}#{number}"] = call.arguments
    return numbered


def _taken_from_results(calls: Sequence[ToolIntent], pack: Pack) -> list[ToolIntent]:
    """The calls with what they leave to the results of earlier ones, as far as those were told it."""
    by_tool: dict[str, Mapping[str, Json]] = {}
    completed = []
    for call in calls:
        tool = pack.tool(call.tool)
        taken = {
            name: by_tool[dependency.tool][field]
            for dependency in (tool.depends_on if tool else ())
            for name, field in dependency.fills.items()
            if field in by_tool.get(dependency.tool, {})
        }
        completed.append(call.model_copy(update={"arguments": {**taken, **call.arguments}}))
        by_tool[call.tool] = completed[-1].arguments
    return completed


def same(expected: Json, actual: Json) -> bool:
    """Return whether a value is the expected one, or one of those that are equally right."""
    if isinstance(expected, dict):
        if "any_of" in expected:
            return any(same(option, actual) for option in expected["any_of"])
        return isinstance(actual, dict) and all(
            same(value, actual.get(key)) for key, value in expected.items()
        )
    if isinstance(expected, list):
        fits = isinstance(actual, list) and len(actual) == len(expected)
        return fits and all(map(same, expected, actual))
    if isinstance(expected, str):
        return isinstance(actual, str) and _plain(expected) == _plain(actual)
    return type(actual) in (int, float) and abs(actual - expected) < 0.005


def _plain(text: str) -> str:
    """Without what nobody would call a difference."""
    one_kind = text.replace("’", "'").replace(",", " ")
    return " ".join(one_kind.casefold().split()).strip(_PUNCTUATION)
