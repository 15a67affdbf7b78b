"""Free text of a clause: quoted, after a word such as `saying`, or what remains when all else is taken out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from podium.jobs.operator.judgement.fields.tokenized_text import (
    STOPWORDS,
    Entity,
    Token,
    TokenizedText,
    token_set,
)

_QUOTED = re.compile(r'"([^"\n]{1,8000})"|(?<![\w\'])\'([^\s\'][^\n]{0,8000}?)\'(?!\w)')
_COLON = re.compile(r":(?!\d|//)")

_MESSAGE = (
    "saying that",
    "saying",
    "says",
    "that says",
    "to say",
    "telling them that",
    "telling them",
    "telling him",
    "telling her",
    "that reads",
    "with the message",
    "that",
)
_LABEL = ("called", "titled", "labelled", "labeled", "named", "entitled")
_CUES: dict[str, tuple[str, ...]] = {
    "text": _MESSAGE,
    "body": _MESSAGE,
    "message": _MESSAGE,
    "content": _MESSAGE,
    "title": ("to", *_LABEL),
    "label": _LABEL,
    "subject": ("about", "regarding", "re", "with subject", "with the subject"),
    "reason": (
        "because of",
        "because",
        "cause",
        "due to",
        "on account of",
        "the reason is",
        "the reason being",
    ),
    "query": (
        "for",
        "about",
        "mentioning",
        "containing",
        "that mention",
        "that mentions",
        "called",
        "named",
        "regarding",
        "re",
        "on",
        "saying",
    ),
    "description": ("for", "described as"),
    "notes": ("noting that", "noting", "note that"),
    "reference": ("ref", "referenced"),
    "caption": ("captioned", "showing"),
}
"""Argument → the words after which it is said, beside its own name."""

SEARCHING = frozenset({"query", "search", "term", "terms", "keywords"})
"""Arguments that say what to look for."""
MESSAGES = frozenset({"text", "body", "message", "content"})
"""Arguments that are written to somebody, or down: as they were said, to the last mark."""
_ARTICLES = token_set("the this that my our a an")
_FILE = re.compile(r"(?<![\w/.\-])[\w\-./]{1,150}\.[A-Za-z][A-Za-z0-9]{1,4}(?![\w@])")


@dataclass(frozen=True, slots=True)
class Span:
    """From where to where a text goes. What is in quotation marks is taken as it is."""

    start: int
    end: int
    quoted: bool = False


def quoted_in(tokenized: TokenizedText) -> list[Span]:
    return [
        Span(*match.span(1 if match[1] is not None else 2), quoted=True)
        for match in _QUOTED.finditer(tokenized.smooth)
    ]


def file_named_in(tokenized: TokenizedText) -> Span | None:
    """The name of a file, without its folders."""
    match = _FILE.search(tokenized.smooth)
    if match is None:
        return None
    start, end = match.span()
    return Span(max(start, tokenized.smooth.rfind("/", start, end) + 1), end, quoted=True)


def code_after(tokenized: TokenizedText, name: str) -> Span | None:
    """`reference 8891`: a word with digits right after the argument's own name."""
    match = re.search(
        rf"\b{re.escape(name.replace('_', ' '))} (?:no\.? )?([\w\-]*\d[\w\-]*)", tokenized.lower
    )
    return Span(*match.span(1), quoted=True) if match else None


def cues_of(name: str) -> tuple[str, ...]:
    """List the phrases that announce the argument: its own name, and what people say instead."""
    own = name.replace("_", " ").lower()
    return (f"{own} is", f"{own} of", own, *_CUES.get(name, ()))


def cue_before(tokenized: TokenizedText, start: int, name: str) -> bool:
    """Return whether the words just before `start` announce the argument."""
    before = tokenized.lower[max(0, start - 40) : start].rstrip(" :,='\"")
    return any(
        re.search(rf"\b{re.escape(cue)}$", before)
        for cue in cues_of(name)
        if cue not in {"to", "for", "on"}
    )


class Announced:
    """Finds where a text begins that a word or a colon announces."""

    def __init__(
        self,
        tokenized: TokenizedText,
        entities: list[Entity],
        things: Iterable[str],
        own: frozenset[str],
        names: frozenset[str],
    ) -> None:
        self._tokenized, self._entities, self._own, self._names = tokenized, entities, own, names
        self._things = frozenset(things)

    def begin(self, name: str, required: bool, closed: list[Span]) -> int | None:
        """Find the start of this argument's text. None: nothing announces it."""
        spans = [span for cue in cues_of(name) for span in self._after(cue, name)]
        if required:
            spans += self._after_colon(name)
        # The first one announces; of those that begin there, the longest.
        candidates = [(start, -end) for start, end in spans if not _inside(end, closed)]
        return -min(candidates)[1] if candidates else None

    def _after_colon(self, name: str) -> Iterator[tuple[int, int]]:
        for match in _COLON.finditer(self._tokenized.smooth):
            before = self._tokenized.before(match.start(), 1)
            others = bool(before) and before[0].lower in self._names - {name}
            if not others and not any(entity.touches(*match.span()) for entity in self._entities):
                yield match.span()
                return

    def _after(self, cue: str, name: str) -> Iterator[tuple[int, int]]:
        for match in re.finditer(
            rf"(?<![\w.\-]){re.escape(cue)}(?![\w'\-])", self._tokenized.lower
        ):
            own_name = cue.split(" ")[0] == name.replace("_", " ").split(" ")[0]
            if match.end() < len(self._tokenized.text.rstrip()) and self._announces(
                match.start(), match.end(), cue, name, own_name
            ):
                yield match.span()
                return

    def _announces(self, start: int, end: int, cue: str, name: str, own_name: bool) -> bool:
        after = self._tokenized.smooth[end : end + 3].lstrip()
        if own_name:
            # A bare name is a cue with a mark after it, or after `with`; else it is but a word.
            before = self._tokenized.before(start, 1)
            listed = self._tokenized.smooth[:start].rstrip().endswith(",")
            return (
                after[:1] in {":", "=", '"', "'"}
                or listed
                or cue.endswith(" is")
                or (
                    bool(before)
                    and before[0].lower in {"with", "and", "its", "the"}
                    and cue not in self._own
                )
            )
        if cue in {"to", "for", "on", "re", "about"}:
            return not self._points_at_thing(end, name)
        return True

    def _points_at_thing(self, end: int, name: str) -> bool:
        """`to lead abc123`, `for Sarah`, `to the quote`: what follows is somebody or something."""
        tokens = self._tokenized.after(end, 2)
        if not tokens or tokens[0].lower in {"me", "us", "it"}:
            return True
        first = tokens[-1] if tokens[0].lower in _ARTICLES else tokens[0]
        if first.lower in self._things:
            return True
        # Whoever searches for Sarah names her; whoever writes to her does not.
        free = {"number", "period", "name"} if name in SEARCHING else {"number", "period"}
        return any(
            entity.start <= first.start < entity.end and entity.kind not in free
            for entity in self._entities
        )


def _inside(at: int, spans: list[Span]) -> bool:
    return any(span.start - 2 <= at <= span.end for span in spans)


_HANGING = token_set(
    "by on at for due before this from until to of with in re about the a an no number id and under against via per assign assigned that cob eod"
)
_POLITE = token_set(
    "please pls thanks thank you cheers ta mate asap now too it them him her us me sorry hi hey hello can could would"
)
_BEFORE_TEXT = (_HANGING - token_set("the a an this no")) | token_set(
    "please pls can could would hi hey hello me us"
)
_SPEAKING = token_set("we we'll we're we've i i'll i'm i've you you're your our it's is are")
_WISHING = STOPWORDS | token_set("want wants wanted like love would wish")
_SAYS_WHEN = frozenset({"date", "time", "datetime", "period"})


def hanging(token: str) -> bool:
    """Return whether a word means nothing without what followed it."""
    return token in _HANGING


def after_comma(
    tokenized: TokenizedText, entities: list[Entity], own: frozenset[str]
) -> Span | None:
    """`void invoice 12, it was a duplicate`: what a comma adds, unless it only says what to do."""
    things = (entity for entity in entities if entity.kind.startswith(("id", "record")))
    last = max((entity.end for entity in things), default=0)
    comma = tokenized.smooth.find(",", last)
    if comma < 0 or not last:
        return None
    tokens = tokenized.between(comma, len(tokenized.text))
    informative = any(token.lower not in own and token.lower not in STOPWORDS for token in tokens)
    return Span(comma + 1, len(tokenized.text)) if informative else None


def without_orders(tokenized: TokenizedText, span: Span, own: frozenset[str], polite: bool) -> Span:
    """The span without a last part that only says what to do, such as `, add that` or `, make a task`.

    `polite`: nor a last part that is only polite.
    """
    while not span.quoted:
        comma = tokenized.smooth.rfind(",", span.start, span.end)
        tokens = _tokens_between(tokenized, comma, span.end) if comma >= 0 else []
        ordered = any(token in own for token in tokens)
        courtesy = polite and all(token in _POLITE for token in tokens)
        if comma < 0 or not (ordered or courtesy):
            break
        if any(
            token not in own and token not in STOPWORDS and token not in _POLITE for token in tokens
        ):
            break
        span = Span(span.start, comma)
    return span


def _tokens_between(tokenized: TokenizedText, start: int, end: int) -> list[str]:
    """`the to-do list` has a word that registries write in two."""
    return [part for token in tokenized.between(start, end) for part in token.lower.split("-")]


def left_over(
    tokenized: TokenizedText,
    entities: list[Entity],
    used: list[Entity],
    own: frozenset[str],
    things: frozenset[str],
    message: bool,
) -> str:
    """The words that are neither the order itself nor anything that was used. Empty: they say nothing.

    `message`: they may be what somebody is told, and `we'll be there at 8` says something.
    """
    runs = _runs(tokenized, used)
    remaining: list[list[Token]] = []
    for at, run in enumerate(runs):
        if not remaining:
            run = _without_head(run, own)
        if at + 1 < len(runs):
            run = _without_tail(run, _HANGING | things)
        if run:
            remaining.append(run)
    if remaining:
        remaining[-1] = _without_tail(remaining[-1], _POLITE)
    tokens = [token for run in remaining for token in run]
    spoken = message and any(token.lower in _SPEAKING for token in tokens)
    if not spoken and not _says_something(tokens, entities, own):
        return ""
    return " ".join(tokenized.text[run[0].start : run[-1].end] for run in remaining if run)


def _runs(tokenized: TokenizedText, used: list[Entity]) -> list[list[Token]]:
    """The words between what was used; there is a run, if an empty one, before and after each."""
    runs, at = [], 0
    for entity in sorted(used, key=lambda entity: entity.start):
        runs.append(list(tokenized.between(at, entity.start)))
        at = max(at, entity.end)
    return [*runs, list(tokenized.between(at, len(tokenized.text)))]


def _without_head(run: list[Token], own: frozenset[str]) -> list[Token]:
    """The run without the order it begins with: up to the order's last own word, then what hangs."""
    head = next(
        (
            at
            for at, token in enumerate(run)
            if token.lower not in own and token.lower not in _WISHING
        ),
        len(run),
    )
    last = max((at for at in range(head) if run[at].lower in own), default=-1)
    rest = run[last + 1 :]
    while rest and rest[0].lower in _BEFORE_TEXT:
        rest = rest[1:]
    return rest


def _without_tail(run: list[Token], endings: frozenset[str]) -> list[Token]:
    while run and run[-1].lower in endings:
        run = run[:-1]
    return run


def _says_something(tokens: list[Token], entities: list[Entity], own: frozenset[str]) -> bool:
    """Return whether there is more than small words, words of the order, when, and of which thing."""
    when = [
        entity for entity in entities if entity.kind in _SAYS_WHEN or entity.kind.startswith("id")
    ]
    return any(
        token.lower not in own
        and token.lower not in STOPWORDS
        and not any(entity.touches(token.start, token.end) for entity in when)
        for token in tokens
    )
