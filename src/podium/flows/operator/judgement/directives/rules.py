"""What a rule is, and what it is held against: a message, what was read in it, and the pack."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Literal

from podium.domain.gating import Tier
from podium.domain.model import Json
from podium.domain.operating import Directive, Message, Reading, Wish
from podium.domain.packs import Pack, PackTool
from podium.flows.operator.judgement.directives.forms import forms, plain

Quoted = Literal["counts", "outgoing counts", "is let be"]
"""Whether the same words count as the content of a note or a message, where they are no command."""

_DENIED = re.compile(
    r"(?:\b(?:don't|do not|dont|never|not to|must not|mustn't|shouldn't|should not|won't|will not|"
    r"cannot|can't|can not|wouldn't|didn't|did not|without|rather than|instead of|no need to|avoid|"
    r"refuse to|refused to|wrong to|stop)|\bdid \w+)"
    r"(?: (?:ever|just|please|go and|also|want to|try to|you to|us to|me to))?\s*$"
)
"""Ends what stands before words that are denied or asked about."""
_NOTE = re.compile(
    r"(?:please |can you |could you |hey |ok |also )*(?:(?:create|add|make|new|leave|write|log|take|put|record|set)"
    r"(?: (?:a|an|new|me|us|the|up|down|quick|short|in|another)){0,4} (?:task|note|todo|to-do|reminder)s?\b|"
    r"(?:task|note|todo|to-do|reminder)\b|remind (?:me|us|\w+) (?:to|that|about)\b|note (?:that|to self)\b)"
)
"""Begins a message that only wants something written down."""
_LETTER = re.compile(
    r"(?:please |can you |could you |hey |ok |also )*(?:text|sms|email|e-mail|message|tell|reply to|write to|let)"
    r"(?: [^\s:]+){1,5}?(?::| that\b| saying\b| to say\b| know\b)"
)
"""Begins a message that wants something said to somebody."""
_TOLD = re.compile(
    r'[:"]|\b(?:that|saying|says?|note|task|todo|reminder|remind|text|email|sms|message|tell|write|titled?|reason)\b'
)
"""Stands before words that somebody is told or that are written down."""
_LOOKED_BACK = 60


class Case:
    """A message under judgement."""

    def __init__(self, message: Message, reading: Reading, pack: Pack) -> None:
        self.message = message
        self.reading = reading
        self.pack = pack

    @cached_property
    def forms(self) -> tuple[str, ...]:
        """What was said, plainly and undisguised."""
        return forms(self.message.text)

    @cached_property
    def outgoing(self) -> tuple[str, ...]:
        """What would be said to people outside, plainly."""
        texts = [text for wish in self.reading.wishes for text in self._texts(wish, Tier.T3)]
        said = plain(self.message.text)
        letter = _LETTER.match(said)
        if letter is not None:
            texts.append(said[letter.end() :])
        return tuple(form for text in texts for form in forms(text))

    def is_content(self, found: re.Match[str], *, inside_only: bool) -> bool:
        """Whether words that were found in a form of the message are only to be written down or told.

        Every risky call must then carry them as a text of its own.
        """
        risky = [wish for wish in self.reading.wishes if self.tier_of(wish) > Tier.T1]
        if inside_only and risky:
            return False
        carried = [wish for wish in self.reading.wishes if self._carries(wish, found[0])]
        if any(wish not in carried for wish in risky):
            return False
        said = plain(self.message.text)
        begins = _NOTE.match(said) or (None if inside_only else _LETTER.match(said))
        behind = begins is not None and found.start() >= begins.end()
        # A classifier may take any sentence for a note: that it is one must have been said.
        return behind or (
            bool(carried) and _TOLD.search(found.string, 0, found.start()) is not None
        )

    def tier_of(self, wish: Wish) -> Tier:
        """The highest of the tools behind it, as the registry has them; T4 for what it does not have."""
        skill = self.pack.skill(wish.tool)
        names = [step.tool for step in skill.steps] if skill else [wish.tool]
        tools = [self.pack.tool(name) for name in names]
        return max((tool.tier if tool else Tier.T4 for tool in tools), default=Tier.T4)

    def _carries(self, wish: Wish, words: str) -> bool:
        return any(words in plain(text) for text in self._texts(wish))

    def _texts(self, wish: Wish, tier: Tier | None = None) -> Iterator[str]:
        tool = self.pack.tool(wish.tool)
        if tool is None or (tier is not None and tool.tier is not tier):
            return
        for name, value in wish.arguments.items():
            if isinstance(value, str) and _kind(tool, name) == "text":
                yield value


def _kind(tool: PackTool, name: str) -> Json:
    return tool.properties.get(name, {}).get("x-kind")


@dataclass(frozen=True)
class Rule:
    """One thing that is never done."""

    name: str
    directive: Directive
    because: str
    """A clause that a person reads behind `Directive conflict`."""
    applies: Callable[[Case], bool]


def said(
    name: str,
    directive: Directive,
    because: str,
    hints: str,
    *patterns: str,
    quoted: Quoted = "is let be",
) -> Rule:
    """A rule about the words of a message. One of the `hints` stands in every text that fits.

    A blank in a pattern is any white space, and one with `?` behind it may be missing. Words that are denied or asked about do not count.
    """
    words = _hinted(hints)

    def applies(case: Case) -> bool:
        return any(
            _counts(case, found, quoted)
            for form in case.forms
            if any(hint in form for hint in words)
            for pattern in patterns
            for found in compiled(pattern).finditer(form)
        )

    return Rule(name, directive, because, applies)


def outgoing(name: str, directive: Directive, because: str, hints: str, *patterns: str) -> Rule:
    """A rule about what would be said to people outside."""
    words = _hinted(hints)

    def applies(case: Case) -> bool:
        return any(
            compiled(pattern).search(text)
            for text in case.outgoing
            if any(hint in text for hint in words)
            for pattern in patterns
        )

    return Rule(name, directive, because, applies)


def _hinted(hints: str) -> tuple[str, ...]:
    """The words of a list; `_` stands for a blank in one."""
    return tuple(hint.replace("_", " ") for hint in hints.split())


def _counts(case: Case, found: re.Match[str], quoted: Quoted) -> bool:
    start = found.start()
    if _DENIED.search(found.string[max(0, start - _LOOKED_BACK) : start]):
        return False
    if quoted == "counts":
        return True
    return not case.is_content(found, inside_only=quoted == "outgoing counts")


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Made when a text first holds a hint: most messages need none of them."""
    return re.compile(pattern.replace(" ?", r"\s?").replace(" ", r"\s+"))
