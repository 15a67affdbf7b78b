"""What a message has and no wish took: half of what was asked for is not what was asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from podium.domain.model import Json
from podium.flows.operator.judgement.caution.roots import root, roots_of
from podium.flows.operator.judgement.caution.said import Said, Span
from podium.flows.operator.judgement.fields.entity import Entity

_WHO_OR_WHAT = ("id", "phone", "email")
_WHEN = frozenset({"date", "time", "datetime"})
_UNREAD = re.compile(
    r"(?<![\w:./-])\d{1,2}:\d{2}(?![\w:])|(?<![\w@./$#:-])[a-z]{2,12}[-_]?\d{2,12}(?=:(?:\s|$))"
)
"""A time of day, or an id with a colon behind it."""
_SEVERAL = re.compile(r"\b([^\W\d_]{3,}s)\s?:\s*(?=\S[^\n]{0,400}(?:[,;\n]| and ))")
_QUOTED = re.compile(r"\"([^\"]{2,400})\"")
_NO_MORE = re.compile(r"\b(?:from|instead of|rather than|was|originally|not)(?: on)? \Z")
"""What stands before a day that is given up: `move it from Monday to Tuesday`."""
_EACH = re.compile(r"\b(?:each|apiece|a piece|ea)\b")
_BEFORE = 24
_MOST_NAMED = 3


def left_over(said: Said) -> str:
    """Asks about ids, phones, addresses, sums, times and quoted words that are in no argument."""
    rest = [said.words_of(each) for each in untaken(said) if _counts(said, each)]
    if said.changes:
        rest += [*_unread(said), *_quoted(said)]
    if rest:
        return f"What about {_listed(list(dict.fromkeys(rest)))}?"
    return _how_many(said) or _one_for_several(said)


def _how_many(said: Said) -> str:
    """A price for each of several, where nobody took how many: the sum would be another."""
    if not said.changes or _EACH.search(said.lower) is None:
        return ""
    if not any({"money", "number"} <= set(said.kinds_of(wish)) for wish in said.wishes):
        return ""
    given = {_plain(each.value) for each in said.all_given if each.kind == "number"}
    counts = [each for each in said.finds if each.kind == "number"]
    rest = [said.words_of(each) for each in counts if _plain(each.value) not in given]
    ask = "How many: {}? Say it right before the price, as in `3 at $10 each`"
    return ask.format(_listed(rest)) if rest else ""


def untaken(said: Said) -> list[Entity]:
    """The finds that are neither a value of some wish nor part of a text that is one."""
    values = {_plain(each.value) for each in said.all_given}
    whens = [str(each.value) for each in said.all_given if each.kind in _WHEN]
    otherwise = _read_otherwise(said, whens)
    return [
        each
        for each in said.finds
        if _plain(each.value) not in values
        and not (
            each.kind in _WHEN and (otherwise or any(_same_time(each, when) for when in whens))
        )
        and not any(span.holds(each.start, each.end) for span in said.texts)
    ]


def _counts(said: Said, find: Entity) -> bool:
    if find.kind.startswith(_WHO_OR_WHAT):
        return True
    return said.changes and (find.kind == "money" or (find.kind in _WHEN and _matters(said, find)))


def _matters(said: Said, find: Entity) -> bool:
    """Whether it makes a difference when: what is still to come does."""
    if find.kind == "time":
        return any(find.kind in said.kinds_of(wish) for wish in said.wishes)
    before = _NO_MORE.search(said.lower, max(0, find.start - _BEFORE), find.start)
    return before is None and str(find.value)[:10] > said.now.date().isoformat()


def _plain(value: Json) -> str | float:
    """A value by which equal ones are found, whatever the capitals are and however a number is written."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if number else str(value).lower()


def _same_time(find: Entity, given: str) -> bool:
    found = str(find.value)
    return given in (found[:10], found[11:16]) or found in (given, given[:10], given[11:16])


def _read_otherwise(said: Said, whens: Sequence[str]) -> bool:
    """Whether a day was read that no find has as it stands: a period, or a weekday in the past."""
    finds = [each for each in said.finds if each.kind in _WHEN]
    return any(not any(_same_time(find, when) for find in finds) for when in whens)


def _unread(said: Said) -> Iterator[str]:
    """What looks like a value and was found to be none: `25:99`."""
    read = (each for each in said.finds if each.kind in _WHEN or each.kind.startswith("id"))
    known = [*(Span(each.start, each.end) for each in read), *said.texts]
    for found in _UNREAD.finditer(said.lower):
        if not any(span.start < found.end() and found.start() < span.end for span in known):
            yield found.group()


def _quoted(said: Said) -> Iterator[str]:
    """Quoted words of which nothing was taken."""
    values = [str(each.value).lower() for each in said.all_given]
    for found in _QUOTED.finditer(said.text):
        inner = found[1].strip(" .,!?").lower()
        if inner and not any(inner in value or (value and value in inner) for value in values):
            yield found.group()


def _one_for_several(said: Said) -> str:
    """`Tasks: call Bob, order tiles` that came to one wish."""
    if len(said.wishes) > 1 or not said.changes:
        return ""
    wish = said.wishes[0]
    own = roots_of(wish.tool.replace(".", " ").replace("_", " "))
    for found in _SEVERAL.finditer(said.lower):
        if root(found[1]) in own and not any(each.name == found[1] for each in said.all_given):
            return f"Is that one or several {found[1]}? Say each of them in a sentence of its own."
    return ""


def _listed(words: list[str]) -> str:
    shown = words[:_MOST_NAMED]
    if len(shown) == 1:
        return shown[0]
    return f"{', '.join(shown[:-1])} and {shown[-1]}"
