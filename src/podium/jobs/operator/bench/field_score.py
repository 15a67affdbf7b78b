"""Score of the fields read from a message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from podium.core.model import Json
from podium.core.packs import Pack, Skill
from podium.jobs.operator.bench.utterances import UtteranceCase
from podium.jobs.operator.models import IntentClassification, Wish

_MARKS = " .!?;:\"'“”‘’`-"


def calls_of(
    wishes: Iterable[Wish], pack: Pack, context: Mapping[str, Json] | None = None
) -> list[Wish]:
    """The wishes with each skill as its tools, in order; a step for many elements is one call."""
    return [call for wish in wishes for call in _calls(wish, pack.skill(wish.tool), context or {})]


def _calls(wish: Wish, skill: Skill | None, context: Mapping[str, Json]) -> Iterator[Wish]:
    if skill is None:
        yield wish
        return
    given = {"message": wish.arguments, "context": context}
    for step in skill.steps:
        if all(_at(path, given) for path in (step.when, step.each) if path):
            found = {name: _at(path, given) for name, path in step.arguments.items()}
            told = {name: value for name, value in found.items() if value is not None}
            yield Wish(tool=step.tool, arguments=told)


def _at(path: Json, given: Json) -> Json:
    """What stands at `$message.NAME` or `$context.PATH`; None for what is not known before it runs."""
    if not isinstance(path, str) or not path.startswith("$"):
        return None
    for part in path[1:].split("."):
        given = given.get(part) if isinstance(given, dict) else None
    return given


def fields_wrong(case: UtteranceCase, found: IntentClassification, pack: Pack) -> str | None:
    """What was read otherwise than it should have been, in words; None when nothing was."""
    numbered = _numbered(_taken_from_results(calls_of(found.wishes, pack, case.context), pack))
    wrong = [
        f"{tool}.{name}: {numbered.get(tool, {}).get(name)!r} instead of {value!r}"
        for tool, fields in case.fields.items()
        for name, value in fields.items()
        if not same(value, numbered.get(tool, {}).get(name))
    ]
    if case.missing and set(case.missing) != set(found.missing_evidence):
        asked = ", ".join(found.missing_evidence) or "nothing"
        wrong.append(f"missing: {asked} instead of {', '.join(case.missing)}")
    return "; ".join(wrong) or None


def _numbered(calls: Sequence[Wish]) -> dict[str, Mapping[str, Json]]:
    """Arguments by tool; the second call of a tool is `TOOL#2`."""
    seen: Counter[str] = Counter()
    found: dict[str, Mapping[str, Json]] = {}
    for call in calls:
        seen[call.tool] += 1
        number = seen[call.tool]
        found[call.tool if number == 1 else f"{call.tool}#{number}"] = call.arguments
    return found


def _taken_from_results(calls: Sequence[Wish], pack: Pack) -> list[Wish]:
    """The calls with what they leave to the results of earlier ones, as far as those were told it."""
    told: dict[str, Mapping[str, Json]] = {}
    found = []
    for call in calls:
        tool = pack.tool(call.tool)
        taken = {
            name: told[each.tool][field]
            for each in (tool.depends_on if tool else ())
            for name, field in each.fills.items()
            if field in told.get(each.tool, {})
        }
        found.append(call.model_copy(update={"arguments": {**taken, **call.arguments}}))
        told[call.tool] = found[-1].arguments
    return found


def same(expected: Json, found: Json) -> bool:
    """Whether a value is the expected one, or one of those that are equally right."""
    if isinstance(expected, dict):
        if "any_of" in expected:
            return any(same(each, found) for each in expected["any_of"])
        return isinstance(found, dict) and all(
            same(value, found.get(key)) for key, value in expected.items()
        )
    if isinstance(expected, list):
        fits = isinstance(found, list) and len(found) == len(expected)
        return fits and all(map(same, expected, found))
    if isinstance(expected, str):
        return isinstance(found, str) and _plain(expected) == _plain(found)
    return type(found) in (int, float) and abs(found - expected) < 0.005


def _plain(text: str) -> str:
    """Without what nobody would call a difference."""
    one_kind = text.replace("’", "'").replace(",", " ")
    return " ".join(one_kind.casefold().split()).strip(_MARKS)
