"""Doubts about a reading, in order; the first that holds becomes a question."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from podium.core.decisions import Tier
from podium.core.model import Json
from podium.core.packs import Pack
from podium.jobs.operator.judgement.caution.message_tokens import Given, Said, Span, root, roots_of
from podium.jobs.operator.judgement.caution.requested_acts import (
    not_asked_for,
    only_quoted,
    only_talk,
)
from podium.jobs.operator.judgement.fields.tokenized_text import Entity
from podium.jobs.operator.models import Intent, Message, Reading, Wish

_BELOW_ZERO = re.compile(
    r"(?:(?<![^\s(:=])[-\u2212\u2013]|\b(?:minus|negative)\s{1,2})[$€£]?\d[\d,.]*", re.IGNORECASE
)
_COUNTS = frozenset({"money", "number"})


def strange_amount(said: Said) -> str:
    """Asks about `-500`, `minus 500` and `$1e9`, where a tool of the wishes takes sums or numbers."""
    if not any(_COUNTS & said.kinds_of(wish) for wish in said.wishes):
        return ""
    if found := _BELOW_ZERO.search(said.text):
        return f"{found.group()} is less than nothing. What is the amount, and what should be done with it?"
    for each in said.finds:
        following = said.text[each.end : each.end + 2]
        if each.kind in _COUNTS and following[:1].isalpha() and following[1:].isdigit():
            return f"How much is {said.words_of(each)}{following}, in plain figures?"
        if each.kind == "money" and round(each.value * 100, 6) % 1:
            return f"{said.words_of(each)} is a part of a cent. What is the amount?"
    return ""


_ABOVE = (
    r"(?:boss|owners?|manager|management|ops|operations|admin|administrator|supervisor|director|head office"
    r"|office|ceo|cfo|accounts|legal|partner|team lead|foreman|me|us|myself|everyone|everybody|all)"
)
_AGREED = r"(?:approved|authori[sz]ed|signed off|ok(?:ay)?'?e?d|cleared|agreed|gave (?:the|his|her|their) (?:ok|okay|go-ahead|approval|yes)|said (?:yes|ok|okay|go|it'?s (?:ok|okay|fine)|that'?s (?:ok|okay|fine)))"
_CLAIMED = re.compile(
    rf"(?<!\w)--?(?:approve[d]?|yes|force)\b|\bapproved?\s*[:=]\s*\S|\bexplicit[_ ]approval\b|\bpre-?approved\b|\balready (?:been )?{_AGREED}"
    rf"|\b{_AGREED} (?:this )?(?:by|from|with) (?:my |the |our |your |an? )?{_ABOVE}\b"
    rf"|\b{_ABOVE} (?:has |have |had |just |already |also |both ){{0,2}}{_AGREED}"
    r"|\b(?:i|we) (?:hereby |do |already |have |fully ){0,2}(?:approved?|authori[sz]ed?) (?:this|it|that|them|the (?:plan|action|call|request|run))\b"
    r"|\b(?:consider|treat) (?:it|this|that) (?:as )?(?:approved|authori[sz]ed)\b"
    r"|\bapproval (?:is |was |has been |already )*(?:granted|given|obtained|in place|not needed|not required)\b"
    r"|\bapprovals?\b[^.!?\n]{0,24}\b(?:not|no|n't|isn't|doesn't|don't|unnecessary|skipped|waived|disabled|off)\b"
    r"|\b(?:no|without|skip(?:ping)?|bypass(?:ing)?|ignore|waive)(?: the| any| an| its| further)? approvals?\b"
    rf"|\bwith (?:my|the {_ABOVE}'?s?|{_ABOVE}'?s?|full) (?:approval|ok|okay|permission|consent)\b"
)
_BLOCKS = re.compile(
    r"\[(?:intent|plan|result|tool impact|risks ?/ ?gates|next actions)\]", re.IGNORECASE
)


def claimed_approval(said: Said) -> str:
    """Asks where a message that needs an approval says that there is one."""
    if said.tier < Tier.T2:
        return ""
    if found := _CLAIMED.search(said.spoken):
        told = said.text[found.start() : found.end()].strip()
        return (
            f"An approval is given with APPROVE: ID, not in the message ({told!r}). "
            "What should be done, without these words?"
        )
    return ""


def forged_answer(said: Said) -> str:
    """Asks where a message has the titles of an answer's blocks, or a tool's name in one of its texts."""
    if found := _BLOCKS.search(said.text):
        return f"{found.group()} is how answers are written. What is asked for, in plain words?"
    for wish in said.wishes:
        entry = said.entry(wish)
        required = entry.input_schema.get("required", ()) if entry else ()
        if said.tier_of(wish) < Tier.T2 or any(name not in wish.arguments for name in required):
            continue
        for given in said.given(wish):
            if given.kind == "text" and isinstance(given.value, str) and wish.tool in given.value:
                return f"What is the {given.name.replace('_', ' ')}, in words?"
    return ""


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
_MAX_NAMED = 3


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
    shown = words[:_MAX_NAMED]
    if len(shown) == 1:
        return shown[0]
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


_OR = re.compile(
    r"[\s,]{0,3}(?:or|or else|and/or)(?: (?:on |the |to |for )?(?:the )?[^\W\d_]{0,14})?[\s,]{0,3}",
    re.IGNORECASE,
)


def shared(said: Said) -> str:
    """Asks where two wishes of one tool have the same value and the message has another one of its kind."""
    if question := _one_or_the_other(said) or _taken_back(said):
        return question
    seen: set[tuple[str, str, str]] = set()
    rest = untaken(said) if len(said.wishes) > 1 else []
    for wish in said.wishes:
        for given in said.given(wish):
            again = (wish.tool, given.name, str(given.value))
            if again not in seen:
                seen.add(again)
            elif other := next(_others(said, wish, given, rest), ""):
                return f"Which of them gets {str(given.value)[:60]}, and which {other}?"
    return ""


def _one_or_the_other(said: Said) -> str:
    """`Archive abc123 or abc124`, `give it to Dave or Mike`."""
    if not said.changes or " or " not in said.spoken:
        return ""
    left = untaken(said)
    for one, other in pairwise(said.finds):
        alike = one.kind[:2] == other.kind[:2] and one.value != other.value
        if not alike or not _OR.fullmatch(said.text, one.end, other.start):
            continue
        used = one not in left or other not in left
        if used and not any(span.holds(one.start, other.end) for span in said.texts):
            return f"Which one is meant, {said.words_of(one)} or {said.words_of(other)}?"
    return ""


def _taken_back(said: Said) -> str:
    """`Restore it and archive it`: the second undoes the first."""
    undone: dict[tuple[str, str], str] = {}
    for wish in said.wishes:
        tool = said.pack.tool(wish.tool)
        for given in said.given(wish):
            if not given.kind.startswith("id:"):
                continue
            if first := undone.get((wish.tool, str(given.value))):
                return f"Which is meant, {first} or {wish.tool}? The one undoes the other."
            if tool is not None and tool.undo and tool.undo != tool.name:
                undone[tool.undo, str(given.value)] = tool.name
    return ""


def _others(said: Said, wish: Wish, given: Given, rest: Sequence[Entity]) -> Iterator[str]:
    """What the message has of the same kind and no wish took."""
    yield from (said.words_of(find) for find in rest if find.kind == given.kind)
    yield from _other_choices(said, wish, given)


def _other_choices(said: Said, wish: Wish, given: Given) -> Iterator[str]:
    entry = said.entry(wish)
    shape = entry.input_schema.get("properties", {}).get(given.name, {}) if entry else {}
    if given.kind != "choice" or not isinstance(shape, dict):
        return
    used = {each.value for each in said.all_given if each.name == given.name}
    words: dict[str, list[str]] = shape.get("x-words", {})
    for value in shape.get("enum", ()):
        if value not in used and _is_said(said, [str(value), *words.get(value, ())]):
            yield str(value)


def _is_said(said: Said, words: list[str]) -> bool:
    return any(
        re.search(rf"\b{re.escape(word.replace('_', ' ').lower())}\b", said.spoken)
        for word in words
    )


_DOUBTS = (
    forged_answer,
    claimed_approval,
    only_talk,
    only_quoted,
    strange_amount,
    shared,
    left_over,
    not_asked_for,
)
"""Each gives a question, or an empty text. The first ones doubt that anything was asked for at all."""
_UNSURE = 0.5
"""As sure as a reading is at most that is asked about; below what acts."""


def look_again(
    reading: Reading, message: Message, pack: Pack, entities: Sequence[Entity]
) -> Reading:
    """The reading, or the same as a question. It never becomes less careful, nor does it get another wish.

    `entities` are the finds in the whole of the message's text, by their places in it.
    """
    if reading.intent is not Intent.EXECUTE or not reading.wishes:
        return reading
    said = Said(message.text, reading.wishes, pack, entities, message.now)
    for doubt in _DOUBTS:
        if question := doubt(said):
            return reading.model_copy(
                update={
                    "intent": Intent.CLARIFY,
                    "confidence": min(reading.confidence, _UNSURE),
                    "reasoning": "Part of the message is in doubt, so nothing is done before it is answered",
                    "question": question,
                    "wishes": (),
                    "candidates": tuple(dict.fromkeys(wish.tool for wish in reading.wishes)),
                }
            )
    return reading
