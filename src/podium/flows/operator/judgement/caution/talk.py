"""Talk about an act: a report, a thought, a rehearsal and a forwarded mail ask for nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator

from podium.domain.operating import Wish
from podium.flows.operator.judgement.caution.asked import act_words, phrases_of
from podium.flows.operator.judgement.caution.roots import (
    FUNCTION_WORDS,
    IRREGULAR_PAST,
    WORD,
    root,
    words_in,
)
from podium.flows.operator.judgement.caution.said import Said

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
_BEFORE = 40
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
    begin = max(0, verb - _BEFORE)
    if _WHO_DID.search(said.spoken, begin, verb):
        return True
    named = _NAMED.search(said.text, begin, verb)
    if named is None or (named[1] or "").lower() in FUNCTION_WORDS:
        return False
    return _CAUSED.search(said.spoken, begin, verb) is None


def _is_past(word: str) -> bool:
    return word in IRREGULAR_PAST or (word.endswith("ed") and not word.endswith("eed"))
