"""Acts that a message really requests: not those it quotes, reports, rehearses or forwards."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from podium.core.decisions import Tier
from podium.core.packs import PackTool, Skill, most_specific
from podium.jobs.operator.judgement.caution.message_tokens import (
    IRREGULAR_PAST,
    STOPWORDS,
    TOKEN,
    Argument,
    ParsedMessage,
    TokenSpan,
    names_one,
    root,
    roots_of,
    tokens_in,
)
from podium.jobs.operator.judgement.fields.tokenized_text import Entity
from podium.jobs.operator.judgement.tiers import tools_of
from podium.jobs.operator.models import ToolIntent

_EDGES = " .!?"
_NAMED_PARTS = 2
"""So many steps of a skill, asked for one by one, are asked for instead of the whole."""


def not_asked_for(parsed: ParsedMessage) -> str:
    """Asks about an act that needs an approval and of which no word of the message speaks.

    A T2 act that is all a message is read as is left to the approval: its verb may be one that only
    the classifier knows.
    """
    if question := _nothing_but_text(parsed):
        return question
    for intent in parsed.intents:
        single = len(parsed.intents) == 1 and isinstance(parsed.entry(intent), PackTool)
        checked = parsed.tier_of(intent) >= (Tier.T3 if single else Tier.T2)
        if checked and (unasked := next(_unasked(parsed, intent), None)):
            what = unasked.description.split(". ")[0].split(":")[0].rstrip(".")
            return (
                f"The message does not ask for it clearly: should {unasked.name} be done ({what})?"
            )
    return ""


def _nothing_but_text(parsed: ParsedMessage) -> str:
    """`I want to make a note`: the words that ask are the text themselves."""
    for argument in parsed.all_arguments:
        text = argument.value if argument.kind == "text" and parsed.changes else None
        if isinstance(text, str) and text.strip(_EDGES).lower() == parsed.lower.strip(_EDGES):
            return f"What is the {argument.name.replace('_', ' ')}?"
    return ""


def _unasked(parsed: ParsedMessage, intent: ToolIntent) -> Iterator[PackTool | Skill]:
    entry = parsed.entry(intent)
    if isinstance(entry, PackTool):
        if entry.name not in parsed.text and not _speaks_of(parsed, entry):
            yield entry
        return
    steps = tools_of(intent, parsed.pack)
    named = [tool.name for tool in steps if _speaks_of(parsed, tool)]
    if len(named) >= _NAMED_PARTS:
        rest = (tool for tool in steps if tool.name not in named)
        yield from (tool for tool in rest if parsed.tier_of_tool(tool) >= Tier.T2)


def _speaks_of(parsed: ParsedMessage, tool: PackTool) -> bool:
    return names_one(parsed.spoken_roots, acts_of(parsed, tool)) or any(
        tokens and tokens <= parsed.spoken_tokens for tokens in map(tokens_in, _phrases(tool))
    )


def act_roots(parsed: ParsedMessage, intent: ToolIntent) -> frozenset[str]:
    """Roots of the words that ask for what an intent does."""
    entry = parsed.entry(intent)
    return acts_of(parsed, entry) if entry else frozenset()


def phrases_of(parsed: ParsedMessage, intent: ToolIntent) -> tuple[str, ...]:
    """All that the registry gives as ways to ask for it, in lower case."""
    entry = parsed.entry(intent)
    return _phrases(entry) if entry else ()


def acts_of(parsed: ParsedMessage, entry: PackTool | Skill) -> frozenset[str]:
    """Roots of the registry's own words for it, without those for the things it is done to."""
    taken = _things_taken(entry)
    return _acts(entry.name, _phrases(entry), taken, _other_things(parsed, entry, taken))


@lru_cache(maxsize=2048)
def _acts(
    name: str, phrases: tuple[str, ...], taken: tuple[str, ...], things: tuple[str, ...]
) -> frozenset[str]:
    verb = roots_of(name.replace(".", " ").replace("_", " "))
    own = frozenset().union(*map(roots_of, phrases))
    return ((own - frozenset().union(*map(roots_of, things))) | verb) - roots_of(" ".join(taken))


def _phrases(entry: PackTool | Skill) -> tuple[str, ...]:
    texts = (*entry.synonyms, *(example.say for example in entry.examples))
    return tuple(text.lower() for text in texts)


def _things_taken(entry: PackTool | Skill) -> tuple[str, ...]:
    properties = entry.input_schema.get("properties", {}).values()
    kinds = (str(schema.get("x-kind", "")) for schema in properties)
    return tuple(kind.removeprefix("id:") for kind in kinds if kind.startswith("id:"))


def _other_things(
    parsed: ParsedMessage, entry: PackTool | Skill, taken: tuple[str, ...]
) -> tuple[str, ...]:
    """Words for the things of all domains; of its own only when it is done to one: `invoice job 12`."""
    row = most_specific(parsed.pack.registry, entry.name)
    own = entry.domain or (row.name if row else "")
    rows = (row for row in parsed.pack.registry.domains if row.name != own or own in taken)
    return tuple(name for row in rows for name in (row.name, *row.words))


_NEW = re.compile(r"\b(?:new|another|fresh) (?:\w+ )?\w+\s{0,2}[:,-]?\s{0,2}\Z")
_QUOTE_LOOKBACK = 40
"""Characters before an id in which it is said to be new."""


def only_quoted(parsed: ParsedMessage) -> str:
    """Asks where an intent rests on a quotation alone: what it acts on stands there, or all that asks for it."""
    if not parsed.changes:
        return ""
    for intent in parsed.intents:
        for argument in parsed.arguments_of(intent):
            mentions = [entity for entity in parsed.finds if entity.value == argument.value]
            if question := _about_whom(parsed, intent, argument, mentions):
                return question
        if _asked_in_quotation(parsed, intent):
            return f"The message only quotes it. Should {intent.tool} be done?"
    return ""


def _about_whom(
    parsed: ParsedMessage, intent: ToolIntent, argument: Argument, mentions: list[Entity]
) -> str:
    is_id = argument.kind.startswith("id:")
    reached = argument.kind in ("phone", "email") and parsed.tier_of(intent) >= Tier.T3
    if not mentions or not (is_id or reached):
        return ""
    mention = parsed.text_of(mentions[0])
    if all(_in_quotation(parsed, intent, entity) for entity in mentions):
        return f"{mention} appears only in quoted text. Should {intent.tool} be done with it?"
    if is_id and any(_is_new(parsed, entity) for entity in mentions):
        return f"Does {mention} already exist, or is it a new one?"
    return ""


def _in_quotation(parsed: ParsedMessage, intent: ToolIntent, find: Entity) -> bool:
    """Return whether it is quoted among other words, and the intent is not to keep or send these."""
    return any(
        span.holds(find.start, find.end) and _says_more(parsed, span, find)
        for span in _foreign(parsed, intent)
    )


def _asked_in_quotation(parsed: ParsedMessage, intent: ToolIntent) -> bool:
    quoted = " ".join(parsed.text[span.start : span.end] for span in _foreign(parsed, intent))
    if not quoted or intent.tool in parsed.spoken:
        return False
    acts = act_roots(parsed, intent)
    return not roots_of(quoted).isdisjoint(acts) and not names_one(parsed.spoken_roots, acts)


def _foreign(parsed: ParsedMessage, intent: ToolIntent) -> list[TokenSpan]:
    """The quotations that are no text of the intent itself."""
    own_texts = parsed.texts_of(intent)
    return [
        span
        for span in parsed.quotes
        if not any(text.start < span.end and span.start < text.end for text in own_texts)
    ]


def _says_more(parsed: ParsedMessage, span: TokenSpan, find: Entity) -> bool:
    around = parsed.text[span.start : find.start] + " " + parsed.text[find.end : span.end]
    return len(TOKEN.findall(around)) > 1


def _is_new(parsed: ParsedMessage, find: Entity) -> bool:
    return _NEW.search(parsed.lower, max(0, find.start - _QUOTE_LOOKBACK), find.start) is not None


_HEDGES = re.compile(
    r"\A\W*(?:maybe|perhaps)\b|\b(?:maybe|perhaps)\W*\Z|\b(?:i|we|you) (?:might|may)\b|\bmight (?:want|need|have) to\b"
    r"|\bi wonder(?! if (?:we|you|u|someone) (?:could|can))\b|\bwondering (?:if|whether)(?! (?:we|you|u|someone) (?:could|can|would))\b"
    r"|\bthinking (?:of|about) \w+ing\b|\b(?:i'?m|i am|we'?re|we are|i was|we were|been) (?:\w+ )?(?:thinking (?:of|about)|considering|undecided|unsure)\b"
    r"|\bshould (?:i|we)\b|\bwhat if\b|\b(?:not sure|unsure|undecided) (?:if|whether)\b|\b(?:tempted to|toying with|in two minds)\b"
    r"|\b(?:i|we) (?:was|were|had been) going to\b|\b(?:i|we)(?: had|'d) planned to\b|\b(?:hypothetically|theoretically|in theory)\b"
)
_PERHAPS = re.compile(r"\b(?:maybe|perhaps|possibly) (?:to |just |also )?([^\W\d_]+)")
_REHEARSALS = re.compile(
    r"\bdry[- ]?run\b|\bsimulat(?:e|es|ed|ing|ion)\b|\brehears(?:e|al|ing)\b|\bpretend(?:ing)?\b|\bhypothetical\b"
    r"|\A\W*(?:just |only |this is |as )*(?:an? )?(?:test(?:ing)?|examples?|sample|drill|quiz|e\.?g\.?|for (?:example|instance))\s*[:,.\u2013-]"
    r"|\A\W*(?:please |can you |could you )*(?:translate|spell|pronounce|proof-?read|rephrase|paraphrase)\b"
    r"|\b(?:just|only) (?:testing|a test|an example|a drill|kidding|joking)\b|\bfor testing (?:only|purposes)\b"
)
_FORWARDED = re.compile(
    r"\A\W*(?:fwd?|wg|tr)\s*:|^\s*>|^-{2,}\s*(?:original|forwarded) message|\bbegin forwarded message\b|\bon [^\n]{4,80} wrote:"
    r"|\A\W*(?:sms|text|e-?mail|message|voicemail|note|letter)s? from\b|\b(?:transcript|pasted?|says?|wrote):",
    re.MULTILINE,
)
_FOREIGN_NO = re.compile(
    r"\bn(?:e |')[^\n.!?]{0,60}?\b(?:pas|jamais|plus|rien)\b|\bne pas\b|\b(?:nicht|kein(?:e[nmrs]?)?|niemals|n[ãa]o|niet|geen|nunca|nie wieder|jamais)\b"
    r"|(?<!\w)(?:не|нельзя|никогда)(?!\w)"
)
_FOREIGN_VERB = re.compile(r"\b(?:no|non|não|nao)\s+([^\W\d_]{5,})(?:ar|er|ir|are|ere|ire)\b")
_WHO_DID = re.compile(
    r"\b(?:i|we|he|she|they|you|who|somebody|someone|it|(?:was|were|been|got|being))(?:'ve|'s| have| has| had)?"
    r"(?: (?:already|just|accidentally|mistakenly|wrongly|apparently|also|then|never|only|have|has|had|been|recently)){0,2} $"
)
_NAMED = re.compile(
    r"(?<![\w-])(?:(?:[Tt]he|[Mm]y|[Oo]ur|[Hh]is|[Hh]er) [a-z]+|([A-Z][a-z]+)(?:'s [a-z]+)?)(?: (?:has|had|already|just))? \Z"
)
_CAUSED = re.compile(r"\b(?:wants?|needs?|get|have|likes?|see|make|mark|put|keep)\b")
"""Verbs behind which a thing and a past tense are a request: `get the lead archived`."""
_MISTAKEN = re.compile(
    r"\b(?:by (?:mistake|accident)|accidentally|mistakenly|in error|wrongly|by error)\b"
)
_TALK_LOOKBACK = 40
"""Characters before a verb in which its subject stands."""


def only_talk(parsed: ParsedMessage) -> str:
    """Asks where words around the act say that it is told, thought of, practised or passed on."""
    if not parsed.changes:
        return ""
    spoken = parsed.spoken
    if match := _FORWARDED.search(spoken):
        return f"{_excerpt(match)} introduces the words of somebody else. What should be done with them?"
    if match := _REHEARSALS.search(spoken):
        return f"Should it really be done? The message says {_excerpt(match)}."
    if match := _FOREIGN_NO.search(spoken) or _foreign_ban(parsed):
        return f"Should it be done or not? The message says {_excerpt(match)}."
    if match := _HEDGES.search(spoken) or _hedged_act(parsed):
        return f"Is it decided? The message says {_excerpt(match)}."
    if report := next(_reports(parsed), ""):
        return f"Did that happen already, or should it be done now? The message says {report!r}."
    return ""


def _excerpt(match: re.Match[str]) -> str:
    return repr(match.group().strip()[:60])


def _foreign_ban(parsed: ParsedMessage) -> re.Match[str] | None:
    """`No archivar`: a `no` before a verb that is nearly one of the tool's own."""
    for match in _FOREIGN_VERB.finditer(parsed.spoken):
        for intent in parsed.intents:
            if any(token.startswith(match[1][:5]) for token in act_roots(parsed, intent)):
                return match
    return None


def _hedged_act(parsed: ParsedMessage) -> re.Match[str] | None:
    """`… and maybe archive it`. A roof that is `maybe 20 years old` puts nothing in doubt."""
    for match in _PERHAPS.finditer(parsed.spoken):
        if any(match[1] in _openings(parsed, intent) for intent in parsed.intents):
            return match
    return None


def _openings(parsed: ParsedMessage, intent: ToolIntent) -> set[str]:
    """Words that begin a way to ask for the intent and name the act itself."""
    acts = act_roots(parsed, intent)
    verb = intent.tool.rpartition(".")[2].partition("_")[0]
    begun = (token for phrase in phrases_of(parsed, intent) for token in TOKEN.findall(phrase)[:1])
    return {token for token in (verb, *begun) if root(token) in acts}


def _reports(parsed: ParsedMessage) -> Iterator[str]:
    """Past tenses of the act itself, with somebody who did it, unless the registry has them as a way to ask."""
    mistaken = _MISTAKEN.search(parsed.spoken) is not None
    for match in TOKEN.finditer(parsed.spoken):
        token = match.group()
        if not _is_past(token) or not (mistaken or _somebody_did(parsed, match.start())):
            continue
        for intent in parsed.intents:
            if root(token) not in act_roots(parsed, intent) or parsed.spoken_tokens & _openings(
                parsed, intent
            ):
                continue
            own = frozenset().union(*map(tokens_in, phrases_of(parsed, intent)))
            if token not in own or (mistaken and "mistake" not in own):
                yield parsed.text[max(0, match.start() - 12) : match.end()].strip()


def _somebody_did(parsed: ParsedMessage, verb: int) -> bool:
    """Return whether a subject stands right before the verb: a pronoun, `the boss`, somebody's name."""
    begin = max(0, verb - _TALK_LOOKBACK)
    if _WHO_DID.search(parsed.spoken, begin, verb):
        return True
    named = _NAMED.search(parsed.text, begin, verb)
    if named is None or (named[1] or "").lower() in STOPWORDS:
        return False
    return _CAUSED.search(parsed.spoken, begin, verb) is None


def _is_past(token: str) -> bool:
    return token in IRREGULAR_PAST or (token.endswith("ed") and not token.endswith("eed"))
