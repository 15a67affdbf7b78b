"""Rules of the prime directives: what one is, and the forms of a text it is held against, disguises included."""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Literal
from urllib.parse import unquote

from podium.core.decisions import Tier
from podium.core.model import Json
from podium.core.packs import Pack, PackTool
from podium.jobs.operator.models import Directive, Message, Reading, ToolIntent

MAX_DISGUISED = 20_000
"""Longer texts are not turned round and decoded: no message is longer."""
_QUOTES = str.maketrans({"’": "'", "‘": "'", "ʼ": "'", "`": "'", "´": "'", "“": '"', "”": '"'})
_DASHES = str.maketrans(dict.fromkeys("‐‑‒–—−", "-"))
_LOOK_ALIKE = str.maketrans(
    dict(zip("аеорсухіјѕԁһмтвнкαορτυικνε", "aeopcyxijsdhmtbhkaoptuikve", strict=True))
)
"""Letters of other alphabets that look like Latin ones, once capitals are small."""
_LEET = str.maketrans("01345789@$!|", "oieastbgasil")
_LEET_L = str.maketrans("01345789@$!|", "oleastbgasll")
_MIXED = re.compile(r"(?=\S*[a-z])(?=\S*[0-9@$!|])[a-z0-9@$!|']+")
_SPELLED = re.compile(r"(?<![^\W_])(?:[^\W_][ ._*-]){2,}[^\W_](?![^\W_])")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}){10,}")
_UNPRINTABLE = re.compile(r"[^\x20-\x7e\s]")
_TAG_CHARACTERS = range(0xE0020, 0xE007F)
"""Letters of Unicode that nobody sees, one for each of ASCII's."""


@lru_cache(maxsize=64)
def plain(text: str) -> str:
    """In small letters, without accents and what nobody sees, white space as one blank or line break."""
    if text.isascii():
        return _tidy(_UNPRINTABLE.sub(" ", text.casefold().replace("`", "'")))
    folded = unicodedata.normalize("NFKC", text).casefold().translate(_QUOTES).translate(_DASHES)
    return _tidy("".join(_visible(folded)))


def _visible(text: str) -> Iterator[str]:
    for character in text:
        if character.isascii():
            yield character if character.isprintable() or character in "\n\t\r" else " "
            continue
        parts = unicodedata.normalize("NFKD", character)
        if len(parts) > 1 and parts[0].isascii() and all(map(unicodedata.combining, parts[1:])):
            yield parts[0]
        elif unicodedata.category(character) in ("Cf", "Mn", "Cc", "Cs", "Co"):
            # Between letters these hide a word; marks of other alphabets stay with theirs.
            yield character if unicodedata.category(character) == "Mn" else ""
        else:
            yield character


def _tidy(text: str) -> str:
    return re.sub(r"[^\S\n]*\n\s*", "\n", re.sub(r"[^\S\n]+", " ", text)).strip()


@lru_cache(maxsize=16)
def forms(text: str) -> tuple[str, ...]:
    """The plain form first, then what the text would say if it were disguised; each once."""
    variants = [plain(text)]
    if len(text) <= MAX_DISGUISED:
        variants += (plain(variant) for disguise in _DISGUISES for variant in disguise(text))
    return tuple(dict.fromkeys(variant for variant in variants if variant))


def _look_alikes(text: str) -> Iterator[str]:
    if not text.isascii():
        yield unicodedata.normalize("NFKC", text).casefold().translate(_LOOK_ALIKE)


def _leet(text: str) -> Iterator[str]:
    plain_text = plain(text)
    if not _MIXED.search(plain_text):
        return
    yield _MIXED.sub(lambda match: match[0].translate(_LEET), plain_text)
    yield _MIXED.sub(lambda match: match[0].translate(_LEET_L), plain_text)
    yield _MIXED.sub(lambda match: match[0].replace("11", "ll").translate(_LEET), plain_text)


def _spelled_out(text: str) -> Iterator[str]:
    """`i g n o r e` is one word; two blanks part two of them."""
    if _SPELLED.search(text):
        yield _SPELLED.sub(lambda run: re.sub(r"[ ._*-]", "", run[0]), text)


def _encoded(text: str) -> Iterator[str]:
    for run in _BASE64.findall(text):
        # The alphabet for addresses differs in two letters.
        data = run.rstrip("=").replace("-", "+").replace("_", "/")
        yield from _readable(lambda: base64.b64decode(data + "=" * (-len(data) % 4)))  # noqa: B023
    for run in _HEX.findall(text):
        yield from _readable(lambda: bytes.fromhex(run))  # noqa: B023
    if "%" in text:
        yield unquote(text)
    if "&" in text:
        yield html.unescape(text)


def _readable(decode: Callable[[], bytes]) -> Iterator[str]:
    try:
        decoded = decode().decode()
    except (ValueError, binascii.Error):
        return
    if decoded.isprintable() and any(character.isalpha() for character in decoded):
        yield decoded


def _turned(text: str) -> Iterator[str]:
    yield text[::-1]
    yield codecs.encode(text, "rot13")


def _unseen(text: str) -> Iterator[str]:
    hidden = [
        chr(ord(character) - 0xE0000) for character in text if ord(character) in _TAG_CHARACTERS
    ]
    if hidden:
        yield "".join(hidden)


_DISGUISES = (_look_alikes, _leet, _spelled_out, _encoded, _turned, _unseen)


Quoted = Literal["counts", "outgoing counts", "is let be"]
"""Treatment of the same words in the content of a note or a message, where they are no command."""

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
_OUTGOING = re.compile(
    r"(?:please |can you |could you |hey |ok |also )*(?:text|sms|email|e-mail|message|tell|reply to|write to|let)"
    r"(?: [^\s:]+){1,5}?(?::| that\b| saying\b| to say\b| know\b)"
)
"""Begins a message that wants something said to somebody."""
_REPORTED = re.compile(
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
        """Forms of the message, plain and undisguised."""
        return forms(self.message.text)

    @cached_property
    def outgoing(self) -> tuple[str, ...]:
        """Forms of the texts that would be sent to people outside."""
        texts = [text for intent in self.reading.calls for text in self._texts(intent, Tier.T3)]
        plain_text = plain(self.message.text)
        match = _OUTGOING.match(plain_text)
        if match is not None:
            texts.append(plain_text[match.end() :])
        return tuple(form for text in texts for form in forms(text))

    def is_content(self, match: re.Match[str], *, inside_only: bool) -> bool:
        """Return whether words that were found in a form of the message are only to be written down or told.

        Every risky call must then carry them as a text of its own.
        """
        risky = [intent for intent in self.reading.calls if self.tier_of(intent) > Tier.T1]
        if inside_only and risky:
            return False
        carried = [intent for intent in self.reading.calls if self._carries(intent, match[0])]
        if any(intent not in carried for intent in risky):
            return False
        plain_text = plain(self.message.text)
        begins = _NOTE.match(plain_text) or (None if inside_only else _OUTGOING.match(plain_text))
        behind = begins is not None and match.start() >= begins.end()
        # A classifier may take any sentence for a note: that it is one must have been said.
        return behind or (
            bool(carried) and _REPORTED.search(match.string, 0, match.start()) is not None
        )

    def tier_of(self, intent: ToolIntent) -> Tier:
        """The highest of the tools behind it, as the registry has them; T4 for what it does not have."""
        skill = self.pack.skill(intent.tool)
        names = [step.tool for step in skill.steps] if skill else [intent.tool]
        tools = [self.pack.tool(name) for name in names]
        return max((tool.tier if tool else Tier.T4 for tool in tools), default=Tier.T4)

    def _carries(self, intent: ToolIntent, phrase: str) -> bool:
        return any(phrase in plain(text) for text in self._texts(intent))

    def _texts(self, intent: ToolIntent, tier: Tier | None = None) -> Iterator[str]:
        tool = self.pack.tool(intent.tool)
        if tool is None or (tier is not None and tool.tier is not tier):
            return
        for name, value in intent.arguments.items():
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


def message_rule(
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
    needles = _hinted(hints)

    def applies(case: Case) -> bool:
        return any(
            counts(case, match, quoted)
            for form in case.forms
            if any(hint in form for hint in needles)
            for pattern in patterns
            for match in compiled(pattern).finditer(form)
        )

    return Rule(name, directive, because, applies)


def outgoing_rule(
    name: str, directive: Directive, because: str, hints: str, *patterns: str
) -> Rule:
    """A rule about what would be said to people outside."""
    needles = _hinted(hints)

    def applies(case: Case) -> bool:
        return any(
            compiled(pattern).search(text)
            for text in case.outgoing
            if any(hint in text for hint in needles)
            for pattern in patterns
        )

    return Rule(name, directive, because, applies)


def _hinted(hints: str) -> tuple[str, ...]:
    """The words of a list; `_` stands for a blank in one."""
    return tuple(hint.replace("_", " ") for hint in hints.split())


def counts(case: Case, match: re.Match[str], quoted: Quoted) -> bool:
    """Return whether words that a rule is about count: they are neither denied nor only content."""
    start = match.start()
    if _DENIED.search(match.string[max(0, start - _LOOKED_BACK) : start]):
        return False
    if quoted == "counts":
        return True
    return not case.is_content(match, inside_only=quoted == "outgoing counts")


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Made when a text first holds a hint: most messages need none of them."""
    return re.compile(pattern.replace(" ?", r"\s?").replace(" ", r"\s+"))
