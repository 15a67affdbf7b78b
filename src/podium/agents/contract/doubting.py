"""Words around an object that take it back, or that never gave it.

An agent says "wait", and a program that reads only JSON would not hear it. The lists are short and
crude on purpose: a word too many in them costs one more question.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_TAKES_BACK = re.compile(
    r"\b(?:wait|actually|ignore|disregard|corrections?|hold on|instead|scratch that|second thoughts?|on reflection|"
    r"or rather|one moment|just a moment|my mistake|i was wrong|not yet|not final|not my|never ?mind|oops|hmm+|"
    r"retract\w*|take (?:that|it|this) back|changed my mind|no longer|(?:still|first) (?:have|need|want) to|"
    r"let me (?:re-?)?(?:check|think|look|verify|see)|would be wrong|would have (?:said|been)|shall i|should i|"
    r"(?:could|can|will|should|must) ?not|(?:could|should|ca|wo)n['’]t|placeholder|(?:just|only) an example|"
    r"stimmt nicht|doch nicht|falsch|stattdessen|korrektur|en fait|attendez|espera)\b"
    r"|^\W*(?:moment|but|however|unless|except|although|though|aber|mais|pero|nope|no[,.:!])",
    re.IGNORECASE,
)
_HEDGES = re.compile(
    r"\b(?:not|never|neither|\w{1,10}n['’]t|nein|nicht|kein\w{0,2}|doch|edit|update|strike|that said|missed|overlooked|"
    r"treat (?:this|it|that) as|unfortunately|afterwards?|later|fail\w{0,3}|(?:i|we)(?: will|['’]ll)|confirm\w{0,2}|"
    r"after running|before|until|pending|assuming|provided|draft|template|sample|tentative\w{0,2}|preliminary|"
    r"provisional\w{0,2}|unsure|uncertain|confident|doubts?|might|maybe|perhaps|sorry|apolog\w{1,5}|mistaken\w{0,2}|"
    r"mistakes?|wrong|incorrect|reconsider\w{0,3}|revis\w{1,4}|chang(?:e|ed|ing) (?:my|the|this|that|it))\b",
    re.IGNORECASE,
)
_FAREWELLS = re.compile(r"\b(?:don['’]t|do not) hesitate\b|\bno (?:doubt|problem)\b", re.IGNORECASE)
_ANSWER = r"(?:answer|verdict|reply|response|result|decision|output)"
_NOT_GIVEN = re.compile(
    r"^\W*(?:if|once|until|unless|when)\b"
    rf"|\b(?:would|(?:not|isn['’]t|wasn['’]t) (?:my|the|an?) (?:\w{{1,20}} )?{_ANSWER}|printed|"
    r"(?:tell|told|tells|ask|asks|asked|want|wants) (?:me|us|you) to|(?:says?|said) to|"
    r"possible|draft|template|sample|placeholder|tentative|preliminary|(?:could|might|may) be|do not|don['’]t|"
    rf"(?:an|for) (?:example|instance)|such as|(?:previous|old|earlier|first) {_ANSWER})\b|\be\.g\.",
    re.IGNORECASE,
)
_SENTENCE_BEGINS = re.compile(r"[.!?]\s")
_FENCE_BEGINS = re.compile(r"[`~]{1,8}\w{0,12}$")
_MARKUP = re.compile(r"</?[\w:.-]{1,40}>|<\|\w{1,40}\|>|[`~*_#]{1,8}")
_LAST_LATIN = "\u024f"
_GOES_ON = ",;:-–—([{/\\&"


def takes_back(rest: str) -> bool:
    """Whether what follows an object may mean that it is not the answer after all."""
    return _TAKES_BACK.search(rest) is not None


def is_doubtful(rest: str) -> bool:
    """Whether what follows is anything but plain words of content: denial, regret, a second look, another script.

    For agents that were asked to write nothing after their answer: one that does, and so, is asked again.
    """
    words = _FAREWELLS.sub(" ", rest)
    unread = any(char.isalpha() and char > _LAST_LATIN for char in words)
    return unread or is_unfinished(rest) or _HEDGES.search(words) is not None


def is_unfinished(rest: str) -> bool:
    """Whether what follows goes on with a sentence from before the object, or ends within one."""
    words = _MARKUP.sub(" ", rest).strip()
    return bool(words) and (words[0].islower() or words[-1].isalnum() or words[-1] in _GOES_ON)


def names_one_of(rest: str, values: Iterable[str]) -> bool:
    """Whether one of these values stands in it, at the beginning of a word: "reject" is in "rejected"."""
    return any(re.search(rf"(?<!\w){re.escape(value)}", rest, re.IGNORECASE) for value in values)


def is_only_supposed(before: str) -> bool:
    """Whether the sentence that leads to an object says that it is an example, a wish or somebody else's."""
    written = _FENCE_BEGINS.sub("", before.rstrip()).rstrip()
    sentence = _SENTENCE_BEGINS.split(written.rpartition("\n")[2][-300:])[-1]
    follows_at_once = "\n\n" not in before[len(written) :] and not sentence.endswith(
        (".", "!", "?")
    )
    leads_to_it = follows_at_once or sentence.endswith((":", "："))
    return leads_to_it and _NOT_GIVEN.search(sentence) is not None
