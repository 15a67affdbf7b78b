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
# What models, renderers and terminals put behind an answer by themselves. A sign that could mean
# something, such as a question mark or a cross, is not among it.
_DECORATION = re.compile(
    r"(?:[\s\u200b\ufeff;)}`*_\u2500-\u257f]"
    r"|\.(?!\.)|~{3,}|-{3,}"
    r"|</(?:s|pre|code|(?:(?:final|json|structured|my)[_-])?(?:answer|final|output|result|json|response|reply|payload))>"
    r"|<\|(?:im_end|eot|eot_id|eom_id|end|endoftext|end_of_text|end_of_turn|return)\|>|<end_of_turn>)*+",
    re.IGNORECASE,
)


def takes_back(rest: str) -> bool:
    """Whether what follows an object may mean that it is not the answer after all."""
    return _TAKES_BACK.search(rest) is not None


def words_behind(rest: str) -> str:
    """What an agent wrote after its answer, from the first sign that is no mere decoration on."""
    decoration = _DECORATION.match(rest)
    return rest[decoration.end() :].strip() if decoration else rest


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
