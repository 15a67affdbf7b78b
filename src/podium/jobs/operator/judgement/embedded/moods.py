"""Mood of a clause: bans, questions, suppositions and reports ask for no act; courtesy around a request; urgency."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from podium.jobs.operator.judgement.embedded.tokens import (
    DENIALS,
    STOPWORDS,
    kinds_of,
    plain_tokens,
    stem,
    token_set,
)
from podium.jobs.operator.models import Urgency

OPENINGS = token_set(
    "please pls plz hi hey hello ok okay so well and then also but just now kindly yes yeah sure thanks mate gday"
    " alright right next finally first actually oh um"
)
_POLITE = (
    ("can", "you"), ("could", "you"), ("would", "you"), ("will", "you"), ("can", "u"), ("could", "u"),
    ("can", "ya"), ("could", "ya"), ("would", "ya"),
    ("can", "we"), ("could", "we"), ("can", "someone"), ("can", "somebody"), ("would", "you", "mind"),
    ("i", "want", "you", "to"), ("i", "need", "you", "to"), ("i", "want", "to"), ("i", "need", "to"),
    ("we", "need", "to"), ("we", "want", "to"), ("i", "would", "like", "to"), ("i", "would", "like", "you", "to"),
    ("id", "like", "to"), ("id", "like", "you", "to"), ("id", "like"), ("i", "want"), ("i", "need"), ("we", "need"),
    ("i", "would", "like"), ("go", "ahead", "and"), ("lets",), ("let", "us"), ("why", "dont", "you"),
    ("can", "i", "see"), ("can", "i", "get"), ("can", "i", "have"), ("could", "i", "see"), ("could", "i", "get"),
    ("could", "i", "have"), ("may", "i", "see"), ("do", "me", "a", "favour", "and"), ("time", "to"), ("let", "me", "see"),
    ("dont", "forget", "to"), ("do", "not", "forget", "to"), ("make", "sure", "to"), ("could", "someone"),
    ("could", "somebody"), ("would", "someone"), ("is", "it", "possible", "to", "see"), ("is", "it", "possible", "to", "get"),
)  # fmt: skip
"""Ways to ask that are no questions."""
_BANS = token_set("not dont never nto donot dnt doesnt wont cannot shouldnt mustnt didnt alone")
_TAKEN_BACK = (
    ("never", "mind"), ("nevermind",), ("forget", "it"), ("forget", "that"), ("scratch", "that"), ("ignore", "that"),
    ("no", "need"), ("no", "longer"), ("rather", "than"), ("instead", "of"), ("hold", "off"), ("actually", "no"),
    ("don", "t"), ("changed", "my", "mind"), ("no", "circumstances"), ("no", "way"), ("no", "one"), ("wrong", "to"),
    ("mistake", "to"), ("bad", "idea"), ("decided", "against"), ("advise", "against"), ("rather", "not"), ("wait", "with"), ("wait", "before"), ("not", "yet"),
)  # fmt: skip
_SMALL_TALK = 6
"""Words that may stand before a request without belonging to it."""
_STOPS = frozenset({"stop", "avoid", "without", "refrain", "skip"})
_NOBODY = frozenset({"nobody", "noone", "nothing"})
_PUTS_OFF = {
    ("refrain", "from"), ("forget", "about"), ("wait", "with"), ("hold", "off"), ("off", "on"), ("wait", "before"),
}  # fmt: skip
"""Words behind which a verb in `-ing` is not to be done."""
_NO_BAN = token_set("urgent sure only just yet super worry bother mind fancy special")
"""Words after `not` that forbid nothing."""
_WONDERS = token_set(
    "what which who where when how whats whos wheres whens hows why whose any anything"
)
_AUXILIARIES = token_set("is are was were has did does am isnt arent wasnt hasnt didnt doesnt")
_SUBJECTS = token_set("i we you they he she it u one someone anyone")
_HOW_TO = (
    ("how", "to"), ("what", "happens"), ("what", "would"), ("what", "will"), ("show", "me", "how"),
    ("tell", "me", "how"), ("teach",), ("explain",), ("walk", "me", "through"), ("why",),
    ("am", "i", "allowed"), ("are", "you", "able"), ("are", "we", "allowed"),
    ("do", "i"), ("is", "it", "possible"),
    ("is", "it", "ok"), ("is", "it", "okay"), ("is", "it", "safe"), ("is", "it", "allowed"), ("is", "there", "a", "way"),
    ("what", "the", "way"), ("what", "the", "best", "way"), ("what", "the", "steps"),
    ("what", "the", "process"), ("what", "the", "difference"), ("who", "can"), ("whose", "job"),
    ("would", "it"), ("do", "you", "know", "how"), ("how", "does"), ("what", "if"), ("how", "about"),
    ("what", "can", "you"), ("can", "you", "explain"), ("can", "you", "tell", "me", "how"),
)  # fmt: skip
EXPLAINS = token_set("why explain")
"""Openings of `_HOW_TO` that ask for an answer where a tool that reads is asked for in these very words."""
_SUPPOSES = token_set(
    "if unless suppose supposing imagine pretend hypothetically theoretically hypothetical assuming provided"
)
_WONDERED = token_set("ask asks see check know wonder wondering wondered find sure")
"""Verbs behind which `if` asks and makes nothing depend: `check if it came`."""
_WAITS = frozenset({"when", "once", "after", "until", "before", "whenever", "unless", "if"})
_POLITE_IF = token_set("possible ok okay needed thats so able convenient")
_REPORTS = token_set(
    "said says told tells asked asks wrote writes claims claimed reckons mentioned according"
)

MOOD_CUES = frozenset().union(
    OPENINGS, _BANS, _STOPS, _WONDERS, _AUXILIARIES, _SUBJECTS, _SUPPOSES, _WAITS, _REPORTS,
    *_POLITE, *_TAKEN_BACK, *_HOW_TO,
)  # fmt: skip
"""All words that change how a clause is meant. None of them may be taken for a misspelt other one."""

COURTESY = re.compile(
    r"\b(?:(?:when|if|once) (?:you|u) (?:get|have|find) (?:a |the |some )?(?:moment|chance|minute|min|sec|second|time)"
    r"|when(?:ever)? (?:you|u) can|if (?:it'?s|it is) (?:not too much|no) (?:trouble|bother)|if (?:you|u) (?:can|could|like|want|please)"
    r"|if possible|if (?:you|u) (?:don'?t|do not) mind|(?:would|do) you mind|(?:would|could) it be possible to"
    r"|(?:could|can|may) i (?:please )?(?:trouble|bother|ask) you (?:to|for)|(?:would|could) you be so (?:kind|good) as to|(?:i was |i'm |im |just )?wondering if (?:you|someone) (?:could|can)"
    r"|(?:it would be |would be |be )?(?:great|grateful|nice|good|lovely|much appreciated|appreciated) if (?:you|someone|somebody) (?:could|can|would)"
    r"|any chance (?:you|someone) (?:could|can)|any chance of|do me a favou?r(?: and|,)?|i'?d be (?:grateful|glad) (?:for|if you could)"
    r"|would it be (?:ok|okay|alright|all right) to|just a quick one|pretty please|do you (?:think|reckon) you (?:could|can)|at your earliest convenience|no worries|thanks? in advance|thank you|many thanks|if that'?s ok(?:ay)?)\b",
    re.IGNORECASE,
)
"""Words that ask nicely and say nothing else."""
_MODALS = token_set("can could should may must shall might")
_LEAVE = token_set("allowed permitted supposed whether decides responsible")
"""Words of questions about who may do what."""
_BIDS = token_set("to you we i that should please must can")
"""Words after a report of a request, not of a fact."""


@dataclass(frozen=True, slots=True)
class Mood:
    """Mood of a clause. All false: a command."""

    banned: bool = False
    """A `not` stands before the verb."""
    limited: bool = False
    """A `not` stands somewhere behind it."""
    how_to: bool = False
    question: bool = False
    supposed: bool = False
    reported: bool = False
    denied: tuple[str, ...] = ()
    """Words that the clause denies: `isn't finished`."""

    @property
    def is_no_command(self) -> bool:
        """True if the clause only asks, supposes, reports or forbids."""
        asks = self.how_to or self.question
        return asks or self.banned or self.limited or self.supposed or self.reported

    def within(self, sentence: Sequence[Mood]) -> Mood:
        """The mood of a clause among those of its sentence: `if she calls, cancel it and tell him`."""
        return replace(
            self,
            supposed=any(mood.supposed for mood in sentence),
            reported=any(mood.reported for mood in sentence),
        )

    def forbids(self, reads: bool) -> str:
        """Explain why a tool must not be used for the clause; empty when it may. `reads`: the tool changes nothing."""
        if self.banned:
            return "the message says not to do it"
        if self.how_to:
            return "the message asks about it and does not ask for it"
        if reads:
            return ""
        if self.limited:
            return "the message says not to do it, or not all of it"
        if self.supposed:
            return "the message makes it depend on something that only a person can check"
        if self.reported:
            return "the message reports what somebody else said"
        return "the message asks about it and does not ask for it" if self.question else ""


COMMAND = Mood()


def mood_of(texts: Sequence[str], asked: bool, verbs: Collection[str]) -> Mood:
    """The mood of a clause's words. `asked`: it ends with a question mark; `verbs`: words that may begin an act."""
    plain, polite = _without_courtesy(_after_small_talk(texts, verbs))
    how_to = _asks_how(plain) or _asks_about(plain)
    verb = next((position for position, text in enumerate(plain) if text in verbs), len(plain))
    ban = _first_ban(plain, verb)
    return Mood(
        banned=ban is not None and (ban < verb or verb == len(plain)),
        limited=ban is not None,
        how_to=how_to,
        question=not polite and not _asks_nicely(plain) and (asked or _wonders(plain)),
        supposed=_supposed(plain),
        reported=_reported(plain, verbs),
        denied=tuple(_denied(plain)),
    )


def _after_small_talk(texts: Sequence[str], verbs: Collection[str]) -> Sequence[str]:
    """The words from where somebody asks nicely, if nothing was asked before: `morning all, could you …`."""
    for position in range(min(_SMALL_TALK, len(texts))):
        if any(_begins(texts[position : position + 4], phrase) for phrase in _POLITE):
            return texts[position:]
        if texts[position] in verbs or texts[position] in MOOD_CUES - OPENINGS:
            break
    return texts


def _without_courtesy(texts: Sequence[str]) -> tuple[Sequence[str], bool]:
    polite = False
    while texts:
        courtesy = max(
            (phrase for phrase in _POLITE if _begins(texts, phrase)), key=len, default=None
        )
        if courtesy is not None:
            # `can I see` asks for a reading: the verb stays. `Can I get into trouble` asks for none.
            keep = 1 if courtesy[-1] in ("see", "get", "have") else 0
            if keep and texts[len(courtesy) : len(courtesy) + 1] in (["in"], ["into"], ["to"]):
                break
            texts, polite = texts[len(courtesy) - keep :], True
        elif texts[0] in OPENINGS:
            texts, polite = texts[1:], polite or texts[0] == "please"
        else:
            break
    return texts, polite


def commanded(texts: Sequence[str]) -> Sequence[str]:
    """The words from the verb of a command on, without what is said to ask nicely."""
    return _without_courtesy(texts)[0]


def _begins(texts: Sequence[str], phrase: Sequence[str]) -> bool:
    return tuple(texts[: len(phrase)]) == tuple(phrase)


def _asks_about(texts: Sequence[str]) -> bool:
    if texts[:1] == ["whats"] or (_begins(texts, ("what",)) and texts[1:2] in (["is"], ["are"])):
        texts = ["what", *texts[1 if texts[0] == "whats" else 2 :]]
    if texts[:1] and texts[0] in _MODALS:
        return not _asks_nicely(texts)
    about_leave = _wonders(texts) and not _LEAVE.isdisjoint(texts)
    about_choice = _wonders(texts) and "whether" in texts
    return about_leave or about_choice or any(_begins(texts, phrase) for phrase in _HOW_TO)


def _asks_nicely(texts: Sequence[str]) -> bool:
    """`Could it be cancelled, please`"""
    return texts[:1] != [] and texts[0] in _MODALS and {"be", "please"} <= set(texts)


def _asks_how(texts: Sequence[str]) -> bool:
    if _begins(texts, ("what", "does")):
        return texts[-1] in ("do", "mean")
    asks = ("do", "can", "would", "should", "could")
    return len(texts) > 2 and texts[0] == "how" and texts[1] in asks and texts[2] in _SUBJECTS


def _first_ban(texts: Sequence[str], verb: int) -> int | None:
    """Find the position of the first word that forbids. `Nobody` does so before the verb, or right after it."""
    for position, text in enumerate(texts):
        following = texts[position + 1] if position + 1 < len(texts) else ""
        if text in _BANS and following not in _NO_BAN:
            return position
        if text in _NOBODY and position <= verb + 1 and following not in _NO_BAN:
            return position
        if following.endswith("ing") and (
            text in _STOPS
            or text == "no"
            or tuple(texts[max(0, position - 1) : position + 1]) in _PUTS_OFF
        ):
            return position
        if any(_begins(texts[position : position + 3], phrase) for phrase in _TAKEN_BACK):
            return position
    return None


def _denied(texts: Sequence[str]) -> Iterator[str]:
    """The first telling word behind each denial."""
    for position, text in enumerate(texts):
        if text in DENIALS:
            content = (
                token for token in texts[position + 1 : position + 5] if token not in STOPWORDS
            )
            yield from islice(content, 1)


def _reported(texts: Sequence[str], verbs: Collection[str]) -> bool:
    for position, text in enumerate(texts):
        after = texts[position + 1 : position + 4]
        if text not in _REPORTS or after[:1] in (["yes"], ["no"]):
            continue
        if _BIDS.intersection(after) or any(token in verbs for token in after[:2]):
            return True
    return False


def _wonders(texts: Sequence[str]) -> bool:
    if not texts:
        return False
    if texts[0] in ("do", "have", "will", "would", "could", "can", "should"):
        return len(texts) > 1 and texts[1] in _SUBJECTS
    return texts[0] in _WONDERS or texts[0] in _AUXILIARIES


def _supposed(texts: Sequence[str]) -> bool:
    for position, text in enumerate(texts):
        following = texts[position + 1] if position + 1 < len(texts) else ""
        asked = text == "if" and _WONDERED.intersection(texts[max(0, position - 3) : position])
        if text in _SUPPOSES and following not in _POLITE_IF and not asked:
            return True
    starts = len(texts) > 2 and texts[0] in _WAITS and texts[1] not in _POLITE_IF
    return starts and texts[1] not in _AUXILIARIES


_SOMEBODY = r"(?:you|u|ya|we|someone|somebody|anyone|one of you)"
_COULD = r"(?:can|could|might|would)"
_SOMEBODY_COULD = rf"(?:{_SOMEBODY} {_COULD}|you'd|we'd)"
_NICE = (
    r"(?:great|good|nice|lovely|awesome|handy|grand|brilliant|(?:very |so |most |really )?grateful)"
)
_ASKS = re.compile(
    rf"\b(?:(?:is there )?any chance (?:of (?:you |us |someone )?|{_SOMEBODY_COULD}\b ?)"
    rf"|{_COULD} (?:someone|somebody|anyone|one of you) (?:please |possibly )?(?:be able to )?"
    rf"|{_COULD} {_SOMEBODY} possibly"
    rf"|{_COULD} {_SOMEBODY} (?:please )?be (?:so (?:good|kind|nice) (?:as )?to|able to|a (?:dear|champ|legend|star) and)"
    rf"|be a (?:dear|champ|legend|star|love|mate) and"
    rf"|(?:i was |we were |i am |i'm |im )?(?:hoping|wondering) (?:if |whether |that )?{_SOMEBODY_COULD}(?: be able to)?"
    rf"|i wonder(?:ed)? (?:if|whether) {_SOMEBODY_COULD}(?: be able to)?"
    rf"|(?:it would|it'd|that would|would|i(?:'d| would)) be {_NICE} if {_SOMEBODY_COULD}"
    rf"|i(?:'d| would) (?:really )?(?:appreciate it|love it) if {_SOMEBODY_COULD}"
    r"|(?:could|can|may|might) i (?:please )?(?:trouble|bother|ask|get) you (?:to|for)|i(?:'d| would) be (?:so )?grateful for"
    r"|(?:may|might|can|could) (?:i|we) (?:please )?(?=(?:see|have|view)\b)"
    r"|do me a (?:quick |small |huge |big )?favou?r(?: and|,)?|do the needful and|pretty please|when convenient,?"
    r"|is it possible (?:for me )?to (?=(?:see|view|show|look|find|check|list|read|have a look)\b))",
    re.IGNORECASE,
)
_GREETS = re.compile(
    r"\s*(?:(?:hi|hey|hello|g'?day|hiya|dear)(?: \w+){0,2}?[,!.]+"
    r"|(?:good )?(?:morning|afternoon|arvo|evening|day)(?: \w+){0,2}[,!.]"
    r"|(?:(?:hi|hey|hello|g'?day),? )?(?:i )?hope (?:you|all|everything|this|things)\b[^.!?,\d]*[.!?,]"
    r"|how(?:'s| are| is)? ?(?:ya|you|u|it|things|everyone|life)\b[^.!?,\d]{0,20}[.!?,]"
    r"|(?:sorry|apologies)\b[^.!?,:\d]{0,40}[,.!]|sorry to (?:be a pain|bother you|nag|ask)(?: but)?"
    r"|(?:just )?(?:a quick one|one (?:last|more|other) thing|no rush(?: at all)?|nothing (?:fancy|urgent|major))(?: but)?[,.]?"
    r"|you(?:'re| are) a (?:legend|star|lifesaver|champ)[^.!?\d]{0,20}[.!,]"
    r"|(?:thanks|thank you|cheers|ta)(?: (?:for|so|very|a|heaps|again|mate)\b[^.!?\d]{0,40})?[.!,]"
    r"|don'?t worry(?: about (?:it|that|the rest|anything else))?,)(?=\s)",
    re.IGNORECASE,
)
"""Opening of a message that says nothing of the request."""
_BEFORE_REQUEST = re.compile(
    rf"([^\d:\"“'?]{{1,60}}?)[,!.-] (?=(?:{_COULD}|will) {_SOMEBODY}\b|please\b|kindly\b)",
    re.IGNORECASE,
)
_SIGNED = re.compile(
    r"(?<=[.!?])\s*(?:(?:kind|best|warm) )?(?:regards|cheers),?[\w .]{0,40}$", re.IGNORECASE
)


_THANKS = re.compile(
    r"[,.!?]?\s*\b(?:many thanks|thanks|thank you|thank u|thx|cheers|ta|much appreciated)"
    r"(?: (?:so|very|much|a|lot|heaps|again|in|advance|mate|million|team|guys|all))*[.!\s]*$",
    re.IGNORECASE,
)


_AGAINST = token_set(
    "not never no dont stop wait hold forget skip avoid nobody without unless if when until"
)
_MAX_GREETINGS = 5
_MAX_CLOSING = 80
"""Letters at the end of a message in which thanks and a name may stand."""


def without_courtesy(text: str, is_content: Callable[[str], bool]) -> str:
    """The text in which such words are blanks, or `please`; every other character stays where it is.

    `is_content`: whether a stem names something that a request could be about.
    """
    for _ in range(_MAX_GREETINGS):
        match = _GREETS.match(text)
        if match is None:
            break
        text = _blanked(text, match.end())
    remark = _BEFORE_REQUEST.match(text)
    if remark and not any(_matters(token, is_content) for token in plain_tokens(remark[1])):
        text = _blanked(text, remark.end())
    body, end = text[:-_MAX_CLOSING], text[-_MAX_CLOSING:]
    for closing in (_SIGNED, _THANKS):
        end = closing.sub(lambda match: _closed(match.group()), end)
    text = body + end
    return _ASKS.sub(lambda match: "please".ljust(len(match.group())), text)


def _matters(token: str, is_content: Callable[[str], bool]) -> bool:
    """Return whether a word before a request may be part of it, or against it."""
    return token in _AGAINST or bool(kinds_of(stem(token))) or is_content(stem(token))


def _closed(closing: str) -> str:
    """As many blanks, with the question mark that the sentence before had."""
    return closing[0] + " " * (len(closing) - 1) if closing[0] == "?" else " " * len(closing)


def _blanked(text: str, end: int) -> str:
    return " " * end + text[end:]


_SIGNS = (
    (
        Urgency.LOW,
        r"no (?:rush|hurry|worries on timing)|not (?:very |that |so |super )?urgent|isn'?t urgent|whenever|when you (?:can|get a chance)"
        r"|at your leisure|low priority|some ?time (?:next|this) |no need to hurry|take your time|in your own time",
    ),
    (
        Urgency.CRITICAL,
        r"emergency|critical|life[- ]threatening|flood(?:ing|ed)|collaps(?:ed|ing)|(?:leaking|pouring|coming) (?:in )?(?:right )?now"
        r"|immediate danger|on fire|extremely urgent|super urgent|drop everything|code red|sev ?1|p0",
    ),
    (
        Urgency.HIGH,
        r"urgent(?:ly)?|a\.?s\.?a\.?p|as soon as possible|right away|right now|straight ?away|immediately|at once|high priority"
        r"|top priority|quickly|hurry|time[- ]sensitive|before it'?s too late|leak(?:s|ing)? (?:badly|everywhere)|today please",
    ),
)  # fmt: skip
"""Looked for in this order: `not urgent` has the word `urgent` in it."""
_PATTERNS = tuple(
    (urgency, re.compile(rf"(?<!\w)(?:{signs})(?!\w)", re.IGNORECASE)) for urgency, signs in _SIGNS
)


def urgency_of(text: str) -> Urgency:
    """Normal, unless the words say otherwise."""
    return next((urgency for urgency, signs in _PATTERNS if signs.search(text)), Urgency.NORMAL)
