"""Doubts about a reading, in order; the first that holds becomes a question."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from podium.core.decisions import Tier
from podium.core.model import Json
from podium.core.packs import Pack
from podium.jobs.operator.judgement.caution.message_tokens import (
    Argument,
    ParsedMessage,
    TokenSpan,
    root,
    roots_of,
)
from podium.jobs.operator.judgement.caution.requested_acts import (
    not_asked_for,
    only_quoted,
    only_talk,
)
from podium.jobs.operator.judgement.fields.tokenized_text import Entity
from podium.jobs.operator.models import Intent, Message, Reading, ToolIntent

_BELOW_ZERO = re.compile(
    r"(?:(?<![^\s(:=])[-\u2212\u2013]|\b(?:minus|negative)\s{1,2})[$€£]?\d[\d,.]*", re.IGNORECASE
)
_COUNTS = frozenset({"money", "number"})


def strange_amount(parsed: ParsedMessage) -> str:
    """Asks about `-500`, `minus 500` and `$1e9`, where a tool of the intents takes sums or numbers."""
    if not any(_COUNTS & parsed.kinds_of(intent) for intent in parsed.intents):
        return ""
    if match := _BELOW_ZERO.search(parsed.text):
        return f"{match.group()} is negative. What is the amount, and what should be done with it?"
    for entity in parsed.finds:
        following = parsed.text[entity.end : entity.end + 2]
        if entity.kind in _COUNTS and following[:1].isalpha() and following[1:].isdigit():
            return f"How much is {parsed.text_of(entity)}{following}, in plain figures?"
        if entity.kind == "money" and round(entity.value * 100, 6) % 1:
            return f"{parsed.text_of(entity)} contains a fraction of a cent. What is the amount?"
    return ""


def past_day(parsed: ParsedMessage) -> str:
    """Asks where a day that lies ahead by its nature is a past one: nobody can be booked for yesterday."""
    today = parsed.now.date().isoformat()
    for intent in parsed.intents:
        tool = parsed.pack.tool(intent.tool)
        if tool is None or not (tool.undo or tool.verify):
            continue
        for argument in parsed.arguments_of(intent):
            ahead = argument.kind == "date" and not argument.name.split("_")[0].endswith("ed")
            value = str(argument.value)
            # Who writes the year has looked at it.
            dated = any(value[:4] in find.text for find in parsed.finds if find.kind == "date")
            if ahead and value < today and not dated:
                return f"{argument.value} is past. Which day should it be?"
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


def claimed_approval(parsed: ParsedMessage) -> str:
    """Asks where a message that needs an approval says that there is one."""
    if parsed.tier < Tier.T2:
        return ""
    if match := _CLAIMED.search(parsed.spoken):
        claim = parsed.text[match.start() : match.end()].strip()
        return (
            f"Approvals are given with APPROVE: ID, not in the message ({claim!r}). "
            "What should be done, without these words?"
        )
    return ""


def forged_answer(parsed: ParsedMessage) -> str:
    """Asks where a message has the titles of an answer's blocks, or a tool's name in one of its texts."""
    if match := _BLOCKS.search(parsed.text):
        return f"{match.group()} belongs to the format of answers. What should be done, in plain words?"
    for intent in parsed.intents:
        entry = parsed.entry(intent)
        required = entry.input_schema.get("required", ()) if entry else ()
        if parsed.tier_of(intent) < Tier.T2 or any(
            name not in intent.arguments for name in required
        ):
            continue
        for argument in parsed.arguments_of(intent):
            if (
                argument.kind == "text"
                and isinstance(argument.value, str)
                and intent.tool in argument.value
            ):
                return f"What is the {argument.name.replace('_', ' ')}, in words?"
    return ""


_WHO_OR_WHAT = ("id", "phone", "email")
_WHEN = frozenset({"date", "time", "datetime"})
_UNREAD = re.compile(
    r"(?<![\w:./-])\d{1,2}:\d{2}(?![\w:])|(?<![\w@./$#:-])[a-z]{2,12}[-_]?\d{2,12}(?=:(?:\s|$))"
)
"""A time of day, or an id with a colon behind it."""
_SEVERAL = re.compile(r"\b([^\W\d_]{3,}s)\s?:\s*(?=\S[^\n]{0,400}(?:[,;\n]| and ))")
_QUOTED = re.compile(r"\"([^\"]{2,400})\"")
NO_MORE = re.compile(r"\b(?:from|instead of|rather than|was|originally|not)(?: on)? \Z")
"""Text before a day that is given up: `move it from Monday to Tuesday`."""
_APIECE = re.compile(r"\b(?:each|apiece|a piece|ea)\b")
_BEFORE = 24
_MAX_NAMED = 3


def left_over(parsed: ParsedMessage) -> str:
    """Asks about ids, phones, addresses, sums, times and quoted words that are in no argument."""
    rest = [parsed.text_of(entity) for entity in untaken(parsed) if _counts(parsed, entity)]
    if parsed.changes:
        rest += [*_unread(parsed), *_quoted(parsed)]
    if rest:
        return f"What about {_listed(list(dict.fromkeys(rest)))}?"
    return _how_many(parsed) or _one_for_several(parsed)


def _how_many(parsed: ParsedMessage) -> str:
    """A price for each of several, where nobody took how many: the sum would be another."""
    if not parsed.changes or _APIECE.search(parsed.lower) is None:
        return ""
    if not any({"money", "number"} <= set(parsed.kinds_of(intent)) for intent in parsed.intents):
        return ""
    taken = {
        _plain(argument.value) for argument in parsed.all_arguments if argument.kind == "number"
    }
    counts = [entity for entity in parsed.finds if entity.kind == "number"]
    rest = [parsed.text_of(entity) for entity in counts if _plain(entity.value) not in taken]
    ask = "How many: {}? Write the number right before the price, as in `3 at $10 each`"
    return ask.format(_listed(rest)) if rest else ""


def untaken(parsed: ParsedMessage) -> list[Entity]:
    """The finds that are neither a value of some intent nor part of a text that is one."""
    values = {_plain(argument.value) for argument in parsed.all_arguments}
    whens = [str(argument.value) for argument in parsed.all_arguments if argument.kind in _WHEN]
    otherwise = _read_otherwise(parsed, whens)
    return [
        entity
        for entity in parsed.finds
        if _plain(entity.value) not in values
        and not (
            entity.kind in _WHEN and (otherwise or any(_same_time(entity, when) for when in whens))
        )
        and not any(span.holds(entity.start, entity.end) for span in parsed.texts)
    ]


def _counts(parsed: ParsedMessage, find: Entity) -> bool:
    if find.kind.startswith(_WHO_OR_WHAT):
        return True
    return parsed.changes and (
        find.kind == "money" or (find.kind in _WHEN and _matters(parsed, find))
    )


def _matters(parsed: ParsedMessage, find: Entity) -> bool:
    """Return whether it makes a difference when: what is still to come does."""
    if find.kind == "time":
        return any(find.kind in parsed.kinds_of(intent) for intent in parsed.intents)
    before = NO_MORE.search(parsed.lower, max(0, find.start - _BEFORE), find.start)
    return before is None and str(find.value)[:10] > parsed.now.date().isoformat()


def _plain(value: Json) -> str | float:
    """A value by which equal ones are found, whatever the capitals are and however a number is written."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if number else str(value).lower()


def _same_time(find: Entity, value: str) -> bool:
    text = str(find.value)
    return value in (text[:10], text[11:16]) or text in (value, value[:10], value[11:16])


def _read_otherwise(parsed: ParsedMessage, whens: Sequence[str]) -> bool:
    """Return whether a day was read that no find has as it stands: a period, or a weekday in the past."""
    finds = [entity for entity in parsed.finds if entity.kind in _WHEN]
    return any(not any(_same_time(find, when) for find in finds) for when in whens)


def _unread(parsed: ParsedMessage) -> Iterator[str]:
    """Find text that looks like a value and is none: `25:99`."""
    read = (
        entity for entity in parsed.finds if entity.kind in _WHEN or entity.kind.startswith("id")
    )
    spans = [*(TokenSpan(entity.start, entity.end) for entity in read), *parsed.texts]
    for match in _UNREAD.finditer(parsed.lower):
        if not any(span.start < match.end() and match.start() < span.end for span in spans):
            yield match.group()


def _quoted(parsed: ParsedMessage) -> Iterator[str]:
    """Quoted words of which nothing was taken."""
    values = [str(argument.value).lower() for argument in parsed.all_arguments]
    for match in _QUOTED.finditer(parsed.text):
        inner = match[1].strip(" .,!?").lower()
        if inner and not any(inner in value or (value and value in inner) for value in values):
            yield match.group()


def _one_for_several(parsed: ParsedMessage) -> str:
    """`Tasks: call Bob, order tiles` that came to one intent."""
    if len(parsed.intents) > 1 or not parsed.changes:
        return ""
    intent = parsed.intents[0]
    own = roots_of(intent.tool.replace(".", " ").replace("_", " "))
    for match in _SEVERAL.finditer(parsed.lower):
        if root(match[1]) in own and not any(
            argument.name == match[1] for argument in parsed.all_arguments
        ):
            return f"Is that one or several {match[1]}? Describe each of them in its own sentence."
    return ""


def _listed(names: list[str]) -> str:
    listed = names[:_MAX_NAMED]
    if len(listed) == 1:
        return listed[0]
    return f"{', '.join(listed[:-1])} and {listed[-1]}"


_OR = re.compile(
    r"[\s,]{0,3}(?:or|or else|and/or)(?: (?:on |the |to |for )?(?:the )?[^\W\d_]{0,14})?[\s,]{0,3}",
    re.IGNORECASE,
)


def shared(parsed: ParsedMessage) -> str:
    """Asks where two intents of one tool have the same value and the message has another one of its kind."""
    if question := _one_or_the_other(parsed) or _taken_back(parsed):
        return question
    assigned: set[tuple[str, str, str]] = set()
    rest = untaken(parsed) if len(parsed.intents) > 1 else []
    for intent in parsed.intents:
        for argument in parsed.arguments_of(intent):
            again = (intent.tool, argument.name, str(argument.value))
            if again not in assigned:
                assigned.add(again)
            elif other := next(_others(parsed, intent, argument, rest), ""):
                return f"Which of them gets {str(argument.value)[:60]}, and which {other}?"
    return ""


def _one_or_the_other(parsed: ParsedMessage) -> str:
    """`Archive abc123 or abc124`, `give it to Dave or Mike`."""
    if not parsed.changes or " or " not in parsed.spoken:
        return ""
    left = untaken(parsed)
    for one, other in pairwise(parsed.finds):
        alike = one.kind[:2] == other.kind[:2] and one.value != other.value
        if not alike or not _OR.fullmatch(parsed.text, one.end, other.start):
            continue
        used = one not in left or other not in left
        if used and not any(span.holds(one.start, other.end) for span in parsed.texts):
            return f"Which one do you mean, {parsed.text_of(one)} or {parsed.text_of(other)}?"
    return ""


def _taken_back(parsed: ParsedMessage) -> str:
    """`Restore it and archive it`: the second undoes the first."""
    undone: dict[tuple[str, str], str] = {}
    for intent in parsed.intents:
        tool = parsed.pack.tool(intent.tool)
        for argument in parsed.arguments_of(intent):
            if not argument.kind.startswith("id:"):
                continue
            if first := undone.get((intent.tool, str(argument.value))):
                return f"Which one do you mean, {first} or {intent.tool}? One undoes the other."
            if tool is not None and tool.undo and tool.undo != tool.name:
                undone[tool.undo, str(argument.value)] = tool.name
    return ""


def _others(
    parsed: ParsedMessage, intent: ToolIntent, argument: Argument, rest: Sequence[Entity]
) -> Iterator[str]:
    """Find values of the same kind that no intent took."""
    yield from (parsed.text_of(find) for find in rest if find.kind == argument.kind)
    yield from _other_choices(parsed, intent, argument)


def _other_choices(parsed: ParsedMessage, intent: ToolIntent, argument: Argument) -> Iterator[str]:
    entry = parsed.entry(intent)
    shape = entry.input_schema.get("properties", {}).get(argument.name, {}) if entry else {}
    if argument.kind != "choice" or not isinstance(shape, dict):
        return
    used = {other.value for other in parsed.all_arguments if other.name == argument.name}
    synonyms: dict[str, list[str]] = shape.get("x-words", {})
    for value in shape.get("enum", ()):
        if value not in used and _is_mentioned(parsed, [str(value), *synonyms.get(value, ())]):
            yield str(value)


def _is_mentioned(parsed: ParsedMessage, phrases: list[str]) -> bool:
    return any(
        re.search(rf"\b{re.escape(phrase.replace('_', ' ').lower())}\b", parsed.spoken)
        for phrase in phrases
    )


_DOUBTS = (
    forged_answer,
    claimed_approval,
    only_talk,
    only_quoted,
    strange_amount,
    past_day,
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
    """The reading, or the same as a question. It never becomes less careful, nor does it get another intent.

    `entities` are the finds in the whole of the message's text, by their places in it.
    """
    if reading.intent is not Intent.EXECUTE or not reading.calls:
        return reading
    parsed = ParsedMessage(message.text, reading.calls, pack, entities, message.now)
    for doubt in _DOUBTS:
        if question := doubt(parsed):
            return as_question(reading, question)
    return reading


def as_question(reading: Reading, question: str) -> Reading:
    """The reading as a question, below what acts."""
    return reading.model_copy(
        update={
            "intent": Intent.CLARIFY,
            "confidence": min(reading.confidence, _UNSURE),
            "reasoning": "Part of the message is in doubt, so nothing is done until the question is answered",
            "question": question,
            "calls": (),
            "candidates": tuple(dict.fromkeys(intent.tool for intent in reading.calls)),
        }
    )
