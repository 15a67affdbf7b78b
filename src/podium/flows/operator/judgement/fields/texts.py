"""Free text: what is in quotation marks, what follows a word such as `saying`, or what is left over."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from podium.flows.operator.judgement.fields.entity import Entity
from podium.flows.operator.judgement.fields.passage import Passage
from podium.flows.operator.judgement.fields.plain_words import words_in

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
_ARTICLES = words_in("the this that my our a an")
_FILE = re.compile(r"(?<![\w/.\-])[\w\-./]{1,150}\.[A-Za-z][A-Za-z0-9]{1,4}(?![\w@])")


@dataclass(frozen=True, slots=True)
class Span:
    """From where to where a text goes. What is in quotation marks is taken as it is."""

    start: int
    end: int
    quoted: bool = False


def quoted_in(passage: Passage) -> list[Span]:
    return [
        Span(*found.span(1 if found[1] is not None else 2), quoted=True)
        for found in _QUOTED.finditer(passage.smooth)
    ]


def file_named_in(passage: Passage) -> Span | None:
    """The name of a file, without its folders."""
    found = _FILE.search(passage.smooth)
    if found is None:
        return None
    start, end = found.span()
    return Span(max(start, passage.smooth.rfind("/", start, end) + 1), end, quoted=True)


def code_after(passage: Passage, name: str) -> Span | None:
    """`reference 8891`: a word with digits right after the argument's own name."""
    found = re.search(
        rf"\b{re.escape(name.replace('_', ' '))} (?:no\.? )?([\w\-]*\d[\w\-]*)", passage.lower
    )
    return Span(*found.span(1), quoted=True) if found else None


def cues_of(name: str) -> tuple[str, ...]:
    """What announces the argument: its own name, and what people say instead."""
    own = name.replace("_", " ").lower()
    return (f"{own} is", f"{own} of", own, *_CUES.get(name, ()))


def cue_before(passage: Passage, start: int, name: str) -> bool:
    """Whether the words just before `start` announce the argument."""
    said = passage.lower[max(0, start - 40) : start].rstrip(" :,='\"")
    return any(
        re.search(rf"\b{re.escape(cue)}$", said)
        for cue in cues_of(name)
        if cue not in {"to", "for", "on"}
    )


class Announced:
    """Finds where a text begins that a word or a colon announces."""

    def __init__(
        self,
        passage: Passage,
        found: list[Entity],
        things: Iterable[str],
        own: frozenset[str],
        names: frozenset[str],
    ) -> None:
        self._passage, self._found, self._own, self._names = passage, found, own, names
        self._things = frozenset(things)

    def begin(self, name: str, required: bool, closed: list[Span]) -> int | None:
        """Where the text of this argument begins. None: nothing announces it."""
        found = [place for cue in cues_of(name) for place in self._after(cue, name)]
        if required:
            found += self._after_colon(name)
        # The first one announces; of those that begin there, the longest.
        places = [(start, -end) for start, end in found if not _inside(end, closed)]
        return -min(places)[1] if places else None

    def _after_colon(self, name: str) -> Iterator[tuple[int, int]]:
        for found in _COLON.finditer(self._passage.smooth):
            before = self._passage.before(found.start(), 1)
            others = bool(before) and before[0].lower in self._names - {name}
            if not others and not any(each.touches(*found.span()) for each in self._found):
                yield found.span()
                return

    def _after(self, cue: str, name: str) -> Iterator[tuple[int, int]]:
        for found in re.finditer(rf"(?<![\w.\-]){re.escape(cue)}(?![\w'\-])", self._passage.lower):
            own_name = cue.split(" ")[0] == name.replace("_", " ").split(" ")[0]
            if found.end() < len(self._passage.text.rstrip()) and self._announces(
                found.start(), found.end(), cue, name, own_name
            ):
                yield found.span()
                return

    def _announces(self, start: int, end: int, cue: str, name: str, own_name: bool) -> bool:
        after = self._passage.smooth[end : end + 3].lstrip()
        if own_name:
            # A bare name is a cue with a mark after it, or after `with`; else it is but a word.
            before = self._passage.before(start, 1)
            listed = len(self._names) > 1 and self._passage.smooth[:start].rstrip().endswith(",")
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
        words = self._passage.after(end, 2)
        if not words or words[0].lower in {"me", "us", "it"}:
            return True
        first = words[-1] if words[0].lower in _ARTICLES else words[0]
        if first.lower in self._things:
            return True
        # Whoever searches for Sarah names her; whoever writes to her does not.
        free = {"number", "period", "name"} if name in SEARCHING else {"number", "period"}
        return any(
            each.start <= first.start < each.end and each.kind not in free for each in self._found
        )


def _inside(at: int, spans: list[Span]) -> bool:
    return any(span.start - 2 <= at <= span.end for span in spans)
