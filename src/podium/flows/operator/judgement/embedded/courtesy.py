"""What people say around a wish: greetings, small talk, and ways to ask that only sound like questions."""

from __future__ import annotations

import re
from collections.abc import Callable

from podium.flows.operator.judgement.embedded.lexicon import kinds_of
from podium.flows.operator.judgement.embedded.words import plain_words, stem, word_set

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
"""What a message may begin with that says nothing of what is wanted."""
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


_AGAINST = word_set(
    "not never no dont stop wait hold forget skip avoid nobody without unless if when until"
)
_MOST_GREETINGS = 5
_LONGEST_CLOSING = 80
"""Letters at the end of a message in which thanks and a name may stand."""


def without_courtesy(text: str, tells: Callable[[str], bool]) -> str:
    """The text in which such words are blanks, or `please`; every other character stays where it is.

    `tells`: whether a stem names something that a wish could be about.
    """
    for _ in range(_MOST_GREETINGS):
        found = _GREETS.match(text)
        if found is None:
            break
        text = _blanked(text, found.end())
    remark = _BEFORE_REQUEST.match(text)
    if remark and not any(_matters(word, tells) for word in plain_words(remark[1])):
        text = _blanked(text, remark.end())
    body, end = text[:-_LONGEST_CLOSING], text[-_LONGEST_CLOSING:]
    for closing in (_SIGNED, _THANKS):
        end = closing.sub(lambda found: _closed(found.group()), end)
    text = body + end
    return _ASKS.sub(lambda found: "please".ljust(len(found.group())), text)


def _matters(word: str, tells: Callable[[str], bool]) -> bool:
    """Whether a word before a request may be part of the wish, or against it."""
    return word in _AGAINST or bool(kinds_of(stem(word))) or tells(stem(word))


def _closed(said: str) -> str:
    """As many blanks, with the question mark that the sentence before had."""
    return said[0] + " " * (len(said) - 1) if said[0] == "?" else " " * len(said)


def _blanked(text: str, end: int) -> str:
    return " " * end + text[end:]
