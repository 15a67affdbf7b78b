"""Acts that a message really requests: not those it quotes, reports, rehearses or forwards."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from podium.core.decisions import Tier
from podium.core.packs import PackTool, Skill, most_specific
from podium.jobs.operator.judgement.caution.message_tokens import (
    FUNCTION_WORDS,
    IRREGULAR_PAST,
    WORD,
    Given,
    Said,
    Span,
    names_one,
    root,
    roots_of,
    words_in,
)
from podium.jobs.operator.judgement.fields.tokenized_text import Entity
from podium.jobs.operator.judgement.tiers import tools_of
from podium.jobs.operator.models import Wish

_EDGES = " .!?"
_NAMED_PARTS = 2
"""So many steps of a skill, asked for one by one, are asked for instead of the whole."""


def not_asked_for(said: Said) -> str:
    """Asks about an act that needs an approval and of which no word of the message speaks.

    A T2 act that is all a message is read as is left to the approval: its verb may be one that only
    the classifier knows.
    """
    if question := _nothing_but_text(said):
        return question
    for wish in said.wishes:
        single = len(said.wishes) == 1 and isinstance(said.entry(wish), PackTool)
        checked = said.tier_of(wish) >= (Tier.T3 if single else Tier.T2)
        if checked and (unasked := next(_unasked(said, wish), None)):
            what = unasked.description.split(". ")[0].split(":")[0].rstrip(".")
            return f"No word asks for it plainly: should {unasked.name} be done ({what})?"
    return ""


def _nothing_but_text(said: Said) -> str:
    """`I want to make a note`: the words that ask are the text themselves."""
    for given in said.all_given:
        text = given.value if given.kind == "text" and said.changes else None
        if isinstance(text, str) and text.strip(_EDGES).lower() == said.lower.strip(_EDGES):
            return f"What is the {given.name.replace('_', ' ')}?"
    return ""


def _unasked(said: Said, wish: Wish) -> Iterator[PackTool | Skill]:
    entry = said.entry(wish)
    if isinstance(entry, PackTool):
        if entry.name not in said.text and not _speaks_of(said, entry):
            yield entry
        return
    steps = tools_of(wish, said.pack)
    named = [tool.name for tool in steps if _speaks_of(said, tool)]
    if len(named) >= _NAMED_PARTS:
        rest = (tool for tool in steps if tool.name not in named)
        yield from (tool for tool in rest if said.tier_of_tool(tool) >= Tier.T2)


def _speaks_of(said: Said, tool: PackTool) -> bool:
    return names_one(said.spoken_roots, acts_of(said, tool)) or any(
        words and words <= said.spoken_words for words in map(words_in, _phrases(tool))
    )


def act_words(said: Said, wish: Wish) -> frozenset[str]:
    """Roots of the words that ask for what a wish does."""
    entry = said.entry(wish)
    return acts_of(said, entry) if entry else frozenset()


def phrases_of(said: Said, wish: Wish) -> tuple[str, ...]:
    """All that the registry gives as ways to ask for it, in lower case."""
    entry = said.entry(wish)
    return _phrases(entry) if entry else ()


def acts_of(said: Said, entry: PackTool | Skill) -> frozenset[str]:
    """Roots of the registry's own words for it, without those for the things it is done to."""
    taken = _things_taken(entry)
    return _acts(entry.name, _phrases(entry), taken, _other_things(said, entry, taken))


@lru_cache(maxsize=2048)
def _acts(
    name: str, phrases: tuple[str, ...], taken: tuple[str, ...], things: tuple[str, ...]
) -> frozenset[str]:
    verb = roots_of(name.replace(".", " ").replace("_", " "))
    own = frozenset().union(*map(roots_of, phrases))
    return ((own - frozenset().union(*map(roots_of, things))) | verb) - roots_of(" ".join(taken))


def _phrases(entry: PackTool | Skill) -> tuple[str, ...]:
    said = (*entry.synonyms, *(example.say for example in entry.examples))
    return tuple(each.lower() for each in said)


def _things_taken(entry: PackTool | Skill) -> tuple[str, ...]:
    properties = entry.input_schema.get("properties", {}).values()
    kinds = (str(each.get("x-kind", "")) for each in properties)
    return tuple(kind.removeprefix("id:") for kind in kinds if kind.startswith("id:"))


def _other_things(said: Said, entry: PackTool | Skill, taken: tuple[str, ...]) -> tuple[str, ...]:
    """Words for the things of all domains; of its own only when it is done to one: `invoice job 12`."""
    row = most_specific(said.pack.registry, entry.name)
    own = entry.domain or (row.name if row else "")
    rows = (each for each in said.pack.registry.domains if each.name != own or own in taken)
    return tuple(word for each in rows for word in (each.name, *each.words))


_NEW = re.compile(r"\b(?:new|another|fresh) (?:\w+ )?\w+\s{0,2}[:,-]?\s{0,2}\Z")
_QUOTE_LOOKBACK = 40
"""Characters before an id in which it is said to be new."""


def only_quoted(said: Said) -> str:
    """Asks where a wish rests on a quotation alone: what it acts on stands there, or all that asks for it."""
    if not said.changes:
        return ""
    for wish in said.wishes:
        for given in said.given(wish):
            mentions = [each for each in said.finds if each.value == given.value]
            if question := _about_whom(said, wish, given, mentions):
                return question
        if _asked_in_quotation(said, wish):
            return f"The message only quotes it. Should {wish.tool} be done?"
    return ""


def _about_whom(said: Said, wish: Wish, given: Given, mentions: list[Entity]) -> str:
    is_id = given.kind.startswith("id:")
    reached = given.kind in ("phone", "email") and said.tier_of(wish) >= Tier.T3
    if not mentions or not (is_id or reached):
        return ""
    words = said.words_of(mentions[0])
    if all(_in_quotation(said, wish, each) for each in mentions):
        return f"{words} is only in words that are quoted. Should {wish.tool} be done to it?"
    if is_id and any(_is_new(said, each) for each in mentions):
        return f"Is {words} one that is already there, or a new one?"
    return ""


def _in_quotation(said: Said, wish: Wish, find: Entity) -> bool:
    """Whether it is quoted among other words, and the wish is not to keep or send these."""
    return any(
        span.holds(find.start, find.end) and _says_more(said, span, find)
        for span in _foreign(said, wish)
    )


def _asked_in_quotation(said: Said, wish: Wish) -> bool:
    quoted = " ".join(said.text[span.start : span.end] for span in _foreign(said, wish))
    if not quoted or wish.tool in said.spoken:
        return False
    acts = act_words(said, wish)
    return not roots_of(quoted).isdisjoint(acts) and not names_one(said.spoken_roots, acts)


def _foreign(said: Said, wish: Wish) -> list[Span]:
    """The quotations that are no text of the wish itself."""
    kept = said.texts_of(wish)
    return [
        span
        for span in said.quotes
        if not any(text.start < span.end and span.start < text.end for text in kept)
    ]


def _says_more(said: Said, span: Span, find: Entity) -> bool:
    around = said.text[span.start : find.start] + " " + said.text[find.end : span.end]
    return len(WORD.findall(around)) > 1


def _is_new(said: Said, find: Entity) -> bool:
    return _NEW.search(said.lower, max(0, find.start - _QUOTE_LOOKBACK), find.start) is not None


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
    r"\A\W*(?:fwd?|wg|tr)\s*:|^\s*>|^-{2,}\s*(?:original|forwarded) message|\bbegin forwarded message\b|\bon [^\n]{4,80} wrote:",
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
"""Verbs behind which a thing and a past tense are a wish: `get the lead archived`."""
_MISTAKEN = re.compile(
    r"\b(?:by (?:mistake|accident)|accidentally|mistakenly|in error|wrongly|by error)\b"
)
_TALK_LOOKBACK = 40
"""Characters before a verb in which its subject stands."""


def only_talk(said: Said) -> str:
    """Asks where words around the act say that it is told, thought of, practised or passed on."""
    if not said.changes:
        return ""
    spoken = said.spoken
    if found := _FORWARDED.search(spoken):
        return f"{_shown(found)} stands for words of somebody else. What should be done with them?"
    if found := _REHEARSALS.search(spoken):
        return f"Should it really be done? The message says {_shown(found)}."
    if found := _FOREIGN_NO.search(spoken) or _foreign_ban(said):
        return f"Should it be done or not? The message says {_shown(found)}."
    if found := _HEDGES.search(spoken) or _hedged_act(said):
        return f"Is it decided? The message says {_shown(found)}."
    if told := next(_reports(said), ""):
        return f"Did that happen already, or should it be done now? The message says {told!r}."
    return ""


def _shown(found: re.Match[str]) -> str:
    return repr(found.group().strip()[:60])


def _foreign_ban(said: Said) -> re.Match[str] | None:
    """`No archivar`: a `no` before a verb that is nearly one of the tool's own."""
    for found in _FOREIGN_VERB.finditer(said.spoken):
        for wish in said.wishes:
            if any(word.startswith(found[1][:5]) for word in act_words(said, wish)):
                return found
    return None


def _hedged_act(said: Said) -> re.Match[str] | None:
    """`… and maybe archive it`. A roof that is `maybe 20 years old` puts nothing in doubt."""
    for found in _PERHAPS.finditer(said.spoken):
        if any(found[1] in _openings(said, wish) for wish in said.wishes):
            return found
    return None


def _openings(said: Said, wish: Wish) -> set[str]:
    """Words that begin a way to ask for the wish and name the act itself."""
    acts = act_words(said, wish)
    verb = wish.tool.rpartition(".")[2].partition("_")[0]
    begun = (word for phrase in phrases_of(said, wish) for word in WORD.findall(phrase)[:1])
    return {word for word in (verb, *begun) if root(word) in acts}


def _reports(said: Said) -> Iterator[str]:
    """Past tenses of the act itself, with somebody who did it, unless the registry has them as a way to ask."""
    mistaken = _MISTAKEN.search(said.spoken) is not None
    for found in WORD.finditer(said.spoken):
        word = found.group()
        if not _is_past(word) or not (mistaken or _somebody_did(said, found.start())):
            continue
        for wish in said.wishes:
            if root(word) not in act_words(said, wish) or said.spoken_words & _openings(said, wish):
                continue
            own = frozenset().union(*map(words_in, phrases_of(said, wish)))
            if word not in own or (mistaken and "mistake" not in own):
                yield said.text[max(0, found.start() - 12) : found.end()].strip()


def _somebody_did(said: Said, verb: int) -> bool:
    """Whether a subject stands right before the verb: a pronoun, `the boss`, somebody's name."""
    begin = max(0, verb - _TALK_LOOKBACK)
    if _WHO_DID.search(said.spoken, begin, verb):
        return True
    named = _NAMED.search(said.text, begin, verb)
    if named is None or (named[1] or "").lower() in FUNCTION_WORDS:
        return False
    return _CAUSED.search(said.spoken, begin, verb) is None


def _is_past(word: str) -> bool:
    return word in IRREGULAR_PAST or (word.endswith("ed") and not word.endswith("eed"))
