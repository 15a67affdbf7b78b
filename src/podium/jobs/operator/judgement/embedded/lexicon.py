"""Lexicon of acts in English: verbs by kind, whatever the trade."""

from __future__ import annotations

from functools import lru_cache

from podium.jobs.operator.judgement.embedded.tokens import stem, token_set

READ = "read"

_KINDS = {
    READ: "show list find get view see display search fetch look lookup check what which who where count report"
    " tell give summarise summarize pull browse read query know verify validate audit many much any open",
    "create": "create new add make open log register record enter raise generate put capture draft write lodge"
    " prepare start build issue set insert file pop chuck whack stick jot leave store upload attach save import load",
    "update": "update change edit correct fix amend modify set rename adjust replace move mark switch put bump shift",
    "remove": "delete remove archive discard scrap drop bin trash purge erase cancel void abort revoke annul kill"
    " withdraw destroy wipe clear",
    "restore": "restore reopen reinstate unarchive recover revert undo reactivate unvoid uncancel resume bring reverse",
    "send": "send text txt email message sms mail notify forward ping deliver contact ask request remind tell shoot drop flick",
    "finish": "complete finish finalize finalise close conclude done submit wrap lock lodge finished mark tick",
    "begin": "start begin commence kick launch",
    "assign": "assign allocate give delegate hand reassign put pass",
    "schedule": "schedule book arrange reschedule plan slot organise organize set push line pencil",
    "agree": "accept approve sign confirm agree accepted mark",
    "decline": "decline reject refuse declined mark",
    "receive": "pay record receive log take enter mark",
}

_OPPOSED = {
    frozenset(pair)
    for pair in (
        ("create", "remove"), ("create", "restore"), ("remove", "restore"), ("remove", "finish"), ("remove", "send"),
        ("remove", "schedule"), ("remove", "agree"), ("remove", "begin"), ("remove", "receive"), ("remove", "assign"),
        ("remove", "update"), ("agree", "decline"), ("begin", "finish"), ("restore", "finish"), ("decline", "finish"),
        ("restore", "send"), ("restore", "schedule"), ("restore", "begin"), ("restore", "receive"),
    )
}  # fmt: skip
"""Kinds of acts of which one undoes the other, or after which the other makes no sense."""


def _kinds_by_verb() -> dict[str, frozenset[str]]:
    kinds_by_verb: dict[str, set[str]] = {}
    for kind, verbs in _KINDS.items():
        for verb in verbs.split():
            kinds_by_verb.setdefault(verb, set()).add(kind)
    return {verb: frozenset(kinds) for verb, kinds in kinds_by_verb.items()}


ACTION_VERBS = _kinds_by_verb()
"""Verb in its plain form → the kinds of acts it may stand for."""
_BY_STEM: dict[str, frozenset[str]] = {}
for _word, _kinds in ACTION_VERBS.items():
    _BY_STEM[stem(_word)] = _BY_STEM.get(stem(_word), frozenset()) | _kinds

_PHRASAL = {
    READ: "give me, give us, get me, tell me, look up, look for, bring up, pull up, how many, how much, look at, check on, look into",
    "restore": "bring back, put back, get back, open again, open back, roll back, take back, go back, come back, call back",
    "create": "set up, write up, write down, draw up, make up, work up, take down, open up, put down, put in, key in, type up, note down, jot down",
    "remove": "call off, rid of, throw out, write off, put away, file away, take off, cross off, take down, knock off,"
    " strike off, shut off, scrap off, pull pin, get rid",
    "send": "let know, get out, fire off, send off, send out, send through, shoot off, shoot over, flick over, flick through,"
    " mail out, send over, get to, follow up, write to, let know",
    "finish": "close out, wrap up, sign off, tick off, hand in, close off, lock in, finish off, knock over, check off",
    "begin": "kick off, get going, start off, get started",
    "assign": "hand over, pass on, pass over, give to, hand to, look after",
    "schedule": "set up, pencil in, line up, slot in, book in, lock in, put calendar, send out, put off, push back, push out, bring forward, get in",
    "receive": "drop off, hand over, come in, turn up",
    "agree": "sign off, go ahead, say yes, said yes, thumbs up",
    "decline": "knock back, turn down, say no, said no, fell through",
    "update": "is now, are now, move along, bump along, put in, put into, put to",
}


def _phrasal() -> dict[tuple[str, str], frozenset[str]]:
    kinds_by_pair: dict[tuple[str, str], frozenset[str]] = {}
    for kind, phrases in _PHRASAL.items():
        for phrase in phrases.split(", "):
            verb, particle = phrase.split()
            pair = (stem(verb), particle)
            kinds_by_pair[pair] = kinds_by_pair.get(pair, frozenset()) | {kind}
    return kinds_by_pair


PHRASAL = _phrasal()
"""A verb and what follows it, soon or later, that are one verb together: `put it back`."""
PARTICLES = token_set("back out off away again down over through along")
INTRODUCES = token_set("to that saying about because reading says cause")
"""Words behind which a text may stand that is a value: a task to …, a note that …."""
VAGUE = token_set(
    "something stuff usual deal dealt sort sorted sorting handle whatever tidy thing care"
)
"""Words that leave open what is to be done."""
VAGUE_PAIRS = frozenset(
    tuple(pair.split())
    for pair in (
        "work on", "working on", "get moving", "get onto", "get cracking", "follow up", "take care", "needs attention",
        "eye on", "chase up", "think about", "talk about", "talk to", "prepare for", "ready for",
    )
)  # fmt: skip
"""Two words that do so together."""
MAKING = frozenset(map(stem, ("add", "create", "make", "put", "write", "set", "enter")))
"""Verbs that say nothing of what is made."""
LISTING = frozenset(map(stem, ("list", "search", "find")))
"""Verbs of tools that show many things."""


def kinds_of(verb_stem: str) -> frozenset[str]:
    """The kinds of acts a verb may stand for; empty when it is none that is known."""
    kinds = _BY_STEM.get(verb_stem)
    if kinds is None and verb_stem.startswith("un") and verb_stem[2:] in _BY_STEM:
        return frozenset({"restore"})
    return kinds or frozenset()


@lru_cache(maxsize=4096)
def agreement(requested: frozenset[str], done: frozenset[str]) -> float:
    """Compare the requested acts with those of a tool: 1 the same, 0 unknown, -1 the contrary."""
    if not requested or not done:
        return 0.0
    if requested & done:
        return 1.0
    if READ in done or requested == {READ}:
        return -1.0
    if all(frozenset((one, other)) in _OPPOSED for one in requested - {READ} for other in done):
        return -1.0
    return -0.3
