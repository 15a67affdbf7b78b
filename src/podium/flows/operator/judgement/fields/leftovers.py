"""What is left of a clause when the order and all that was found are taken out."""

from __future__ import annotations

from podium.flows.operator.judgement.fields.entity import Entity
from podium.flows.operator.judgement.fields.passage import Passage, Word
from podium.flows.operator.judgement.fields.plain_words import FUNCTION_WORDS, words_in
from podium.flows.operator.judgement.fields.texts import Span

_HANGING = words_in(
    "by on at for due before this from until to of with in re about the a an no number id and under against via per assign assigned that cob eod"
)
_POLITE = words_in(
    "please pls thanks thank you cheers ta mate asap now too it them him her us me sorry hi hey hello can could would"
)
_BEFORE_TEXT = (_HANGING - words_in("the a an this no")) | words_in(
    "please pls can could would hi hey hello me us"
)
_SPEAKING = words_in("we we'll we're we've i i'll i'm i've you you're your our it's is are")
_WISHING = FUNCTION_WORDS | words_in("want wants wanted like love would wish")
_SAYS_WHEN = frozenset({"date", "time", "datetime", "period"})


def hanging(word: str) -> bool:
    """Whether a word means nothing without what followed it."""
    return word in _HANGING


def after_comma(passage: Passage, found: list[Entity], own: frozenset[str]) -> Span | None:
    """`void invoice 12, it was a duplicate`: what a comma adds, unless it only says what to do."""
    last = max((each.end for each in found if each.kind.startswith("id")), default=0)
    comma = passage.smooth.find(",", last)
    if comma < 0 or not last:
        return None
    words = passage.between(comma, len(passage.text))
    told = any(word.lower not in own and word.lower not in FUNCTION_WORDS for word in words)
    return Span(comma + 1, len(passage.text)) if told else None


def without_orders(passage: Passage, span: Span, own: frozenset[str], polite: bool) -> Span:
    """The span without a last part that only says what to do, such as `, add that` or `, make a task`.

    `polite`: nor a last part that is only polite.
    """
    while not span.quoted:
        comma = passage.smooth.rfind(",", span.start, span.end)
        words = _words_between(passage, comma, span.end) if comma >= 0 else []
        ordered = any(word in own for word in words)
        courtesy = polite and all(word in _POLITE for word in words)
        if comma < 0 or not (ordered or courtesy):
            break
        if any(
            word not in own and word not in FUNCTION_WORDS and word not in _POLITE for word in words
        ):
            break
        span = Span(span.start, comma)
    return span


def _words_between(passage: Passage, start: int, end: int) -> list[str]:
    """`the to-do list` has a word that registries write in two."""
    return [part for word in passage.between(start, end) for part in word.lower.split("-")]


def left_over(
    passage: Passage,
    found: list[Entity],
    used: list[Entity],
    own: frozenset[str],
    things: frozenset[str],
    message: bool,
) -> str:
    """The words that are neither the order itself nor anything that was used. Empty: they say nothing.

    `message`: they may be what somebody is told, and `we'll be there at 8` says something.
    """
    runs = _runs(passage, used)
    kept: list[list[Word]] = []
    for at, run in enumerate(runs):
        if not kept:
            run = _without_head(run, own)
        if at + 1 < len(runs):
            run = _without_tail(run, _HANGING | things)
        if run:
            kept.append(run)
    if kept:
        kept[-1] = _without_tail(kept[-1], _POLITE)
    words = [word for run in kept for word in run]
    spoken = message and any(word.lower in _SPEAKING for word in words)
    if not spoken and not _says_something(words, found, own):
        return ""
    return " ".join(passage.text[run[0].start : run[-1].end] for run in kept if run)


def _runs(passage: Passage, used: list[Entity]) -> list[list[Word]]:
    """The words between what was used; there is a run, if an empty one, before and after each."""
    runs, at = [], 0
    for entity in sorted(used, key=lambda each: each.start):
        runs.append(list(passage.between(at, entity.start)))
        at = max(at, entity.end)
    return [*runs, list(passage.between(at, len(passage.text)))]


def _without_head(run: list[Word], own: frozenset[str]) -> list[Word]:
    """The run without the order it begins with: up to the order's last own word, then what hangs."""
    head = next(
        (at for at, word in enumerate(run) if word.lower not in own and word.lower not in _WISHING),
        len(run),
    )
    last = max((at for at in range(head) if run[at].lower in own), default=-1)
    rest = run[last + 1 :]
    while rest and rest[0].lower in _BEFORE_TEXT:
        rest = rest[1:]
    return rest


def _without_tail(run: list[Word], words: frozenset[str]) -> list[Word]:
    while run and run[-1].lower in words:
        run = run[:-1]
    return run


def _says_something(kept: list[Word], found: list[Entity], own: frozenset[str]) -> bool:
    """Whether there is more than small words, words of the order, when, and of which thing."""
    when = [each for each in found if each.kind in _SAYS_WHEN or each.kind.startswith("id")]
    return any(
        word.lower not in own
        and word.lower not in FUNCTION_WORDS
        and not any(each.touches(word.start, word.end) for each in when)
        for word in kept
    )
