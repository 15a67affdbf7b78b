"""Words around an object that take it back in so many words, or that never gave it.

Text after an answer is ignored. The few phrases here are those by which a model corrects itself in the same reply;
whoever uses one is asked again. They are not meant to be complete: an answer is withdrawn by not sending it.
"""

from __future__ import annotations

import re

_SELF = r"(?:the|this|that|my)(?: \w{1,20})? (?:above|json|object|answer|verdict|reply|response|result|decision|one)"
_TAKES_BACK = re.compile(
    # As a sentence begins: "Wait, …", "Actually no". "Wait for the build" is advice.
    r"(?:^|[.!?\n])\W{0,8}(?:wait|hold on|actually|corrections?|oops|hmm+)(?:\s{0,2}[,.:!…–—-]|\s{1,2}(?:actually|no|let me)\b)"
    r"|\b(?:scratch that|on second thoughts?|my mistake|i was wrong|changed my mind"
    rf"|(?:ignore|disregard|discard|scrap|retract|strike|withdraw) (?:(?:this|that|it|the above)\b(?! \w)|{_SELF}\b)"
    rf"|(?:the above|{_SELF}) (?:is|was) (?:not|void|wrong|invalid|an? (?:draft|example|mistake|placeholder))\b)",
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
# What models, renderers and terminals put behind an answer by themselves.
_DECORATION = re.compile(
    r"(?:[\s\u200b\ufeff;.)}`~*_\u2500-\u257f-]|<[/|][\w|:.-]{1,40}>|<end_of_turn>)*+"
)


def takes_back(rest: str) -> bool:
    """Whether what follows an object says outright that it is not the answer after all."""
    return _TAKES_BACK.search(rest) is not None


def words_behind(rest: str) -> str:
    """What an agent wrote after its answer, from the first sign that is no mere decoration on."""
    decoration = _DECORATION.match(rest)
    return rest[decoration.end() :].strip() if decoration else rest


def is_only_supposed(before: str) -> bool:
    """Whether the sentence that leads to an object says that it is an example, a wish or somebody else's."""
    written = _FENCE_BEGINS.sub("", before.rstrip()).rstrip()
    sentence = _SENTENCE_BEGINS.split(written.rpartition("\n")[2][-300:])[-1]
    follows_at_once = "\n\n" not in before[len(written) :] and not sentence.endswith(
        (".", "!", "?")
    )
    leads_to_it = follows_at_once or sentence.endswith((":", "："))
    return leads_to_it and _NOT_GIVEN.search(sentence) is not None
