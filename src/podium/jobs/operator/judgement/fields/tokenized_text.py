"""Tokenized text, the entities found in it, and English words that are never a name, place or id."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from podium.core.model import Json

_TOKEN = re.compile(r"[^\W_](?:[\w\u0300-\u036f]|['\-](?=[^\W_]))*")
_SPACES = re.compile(r"[ \n]+")
_LOOKALIKES = {
    ord(odd): plain
    for odds, plain in (("‘’ʼ`´", "'"), ("“”„«»", '"'), ("‐‑‒–—−", "-"))
    for odd in odds
}


class _Smoothing(dict[int, str]):
    """Code point → the one character it is read as. Filled as characters are met."""

    def __missing__(self, code: int) -> str:
        self[code] = read_as = _LOOKALIKES.get(code) or _plain(chr(code))
        return read_as


def _plain(character: str) -> str:
    # Controls, bidirectional marks and zero-width characters are invisible: what they part is two words.
    if character != "\n" and unicodedata.category(character) in {
        "Cc",
        "Cf",
        "Cs",
        "Zs",
        "Zl",
        "Zp",
    }:
        return " "
    digit = unicodedata.digit(character, None)
    if digit is not None and character.isdecimal():
        return str(digit)
    folded = unicodedata.normalize("NFKC", character)
    return folded if len(folded) == 1 else character


_SMOOTHED = _Smoothing()


class Token(NamedTuple):
    """A run of letters and digits, apostrophes and dashes inside it included."""

    text: str
    lower: str
    start: int
    end: int

    @property
    def capital(self) -> bool:
        return self.text[:1].isupper()


class TokenizedText:
    """One text with its words. Offsets are those of the text that was given."""

    def __init__(self, text: str, now: datetime) -> None:
        self.text = text
        self.now = now
        self.smooth = smoothed(text)
        # Some letters are longer in lower case ("İ"); offsets must stay what they are.
        lower = self.smooth.lower()
        self.lower = (
            lower
            if len(lower) == len(text)
            else "".join(
                small if len(small := character.lower()) == 1 else character
                for character in self.smooth
            )
        )

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        return tuple(
            Token(match[0], self.lower[match.start() : match.end()], match.start(), match.end())
            for match in _TOKEN.finditer(self.smooth)
        )

    @cached_property
    def shouted(self) -> bool:
        """True if capitals say nothing, because there is hardly anything else."""
        characters = [character for character in self.smooth[:2_000] if character.isalpha()]
        return len(characters) > 3 and sum(map(str.isupper, characters)) > 0.8 * len(characters)

    @cached_property
    def _starts(self) -> dict[int, int]:
        return {token.start: index for index, token in enumerate(self.tokens)}

    def index_at(self, start: int) -> int | None:
        """The number of the word that starts there."""
        return self._starts.get(start)

    def gap(self, index: int) -> str:
        """Text between this token and the one before it."""
        before = self.tokens[index - 1].end if index else 0
        return self.smooth[before : self.tokens[index].start]

    def joined(self, index: int) -> bool:
        """Return whether only blanks part this word from the one before it."""
        return index > 0 and self.gap(index) == " " * len(self.gap(index))

    def before(self, start: int, count: int) -> list[Token]:
        """The words that end before `start`, nearest first."""
        index = bisect_right(self._ends, start)
        return list(self.tokens[max(index - count, 0) : index][::-1])

    def after(self, end: int, count: int) -> tuple[Token, ...]:
        """The words that start at `end` or later, nearest first."""
        index = bisect_left(self._begins, end)
        return self.tokens[index : index + count]

    def between(self, start: int, end: int) -> tuple[Token, ...]:
        """The words that start in this part of the text."""
        return self.tokens[bisect_left(self._begins, start) : bisect_left(self._begins, end)]

    @cached_property
    def _begins(self) -> list[int]:
        return [token.start for token in self.tokens]

    @cached_property
    def _ends(self) -> list[int]:
        return [token.end for token in self.tokens]


def smoothed(text: str) -> str:
    """The text with plain blanks, quotes, dashes and digits; no character is moved."""
    return text.translate(_SMOOTHED)


def tidy(text: str) -> str:
    """The text in one line, composed, with nothing invisible in it."""
    smooth = "".join(" " if _hidden(character) else character for character in text)
    return _SPACES.sub(" ", unicodedata.normalize("NFC", smooth)).strip()


def verbatim(text: str) -> str:
    """The text as it was written, without characters that nobody sees. Lines stay lines."""
    return "".join(
        character for character in text if character in "\n\u200d" or not _hidden(character)
    ).strip()


def _hidden(character: str) -> bool:
    return not character.isprintable() and character != "\n"


def plain_key(text: str) -> str:
    """A word without case and accents, for comparing."""
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFKD", text.casefold())
    return "".join(character for character in apart if not unicodedata.combining(character))


class Entity(NamedTuple):
    """A part of a text that means something by itself."""

    kind: str
    """phone, email, money, date, time, datetime, period, name, suburb, address, postcode, number, `id` or `id:KIND`."""
    value: Json
    text: str
    start: int
    end: int
    certainty: int = 0
    """Of 100. Decides between finds that overlap; it is no probability."""

    def touches(self, start: int, end: int) -> bool:
        return self.start < end and start < self.end


def settle(entities: Iterable[Entity], length: int) -> list[Entity]:
    """The finds that do not overlap, in the order of the text: the most certain first, then the longest."""
    taken = bytearray(length)
    settled = []
    for entity in sorted(
        entities, key=lambda entity: (-entity.certainty, entity.start - entity.end, entity.start)
    ):
        if taken.find(1, entity.start, entity.end) < 0:
            taken[entity.start : entity.end] = b"\x01" * (entity.end - entity.start)
            settled.append(entity)
    return sorted(settled, key=lambda entity: entity.start)


def token_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


MONTHS = token_set(
    "january february march april may june july august september october november december"
)
WEEKDAYS = token_set(
    "monday tuesday wednesday thursday friday saturday sunday mon tue tues wed weds thu thur thurs fri"
)

STOPWORDS = token_set("""a about after again all also am an and any are aren't as asap at away be because been before being both but by can
    can't cannot could did didn't do does doesn't doing don't done down each either else etc ever every everyone everything
    few for from get gets getting go goes going got had has have having he he's her here hers him his how i i'd i'll i'm
    i've if in into is isn't it it's its just let let's like me more most much my near need needs neither new no nobody
    none nor not nothing now of off ok okay on once one only onto or other our ours out over own per please re same shall
    she she's should since so some somebody someone soon still such than thanks thank that that's the their theirs them
    then there these they they're this those though through till to today tomorrow tonight too two under until up upon us
    very via was we we'll we're we've were what what's when where whether which while who who's whom whose why will with
    within without would yes yesterday yet you you'll you're your yours cheers ta mate hi hey hello morning afternoon
    arvo evening night noon midday midnight week fortnight month quarter year day days weeks months years hour hours urgent
    urgently ready sorry good sure well back around another first last next old existing following current latest recent
    recently already later early late""")

VERBS = token_set("""accept accepted accepting add added adding allocate answer approve archive archived arrange ask asked assign
    assigned assigning attach bill book booked booking bring build call called calling came cancel cancelled cancelling
    change changed chase check checked close closed collect come complete completed completing confirm contact contacted
    copy correct create created creating decline declined delegate delete delivered deliver dial draft edit email emailed
    emailing enter estimate fetch file fill finalise finalised finalize finalized find finish finished fix follow found
    generate give gave grab handle hold invoice invoiced issue keep know leave left list load lodge log look lost made
    mail make mark marked message move moved moving named note open order paid pass pay paying phone phoned pick
    pop post prepare print process pull push put quote quoted raise rang read rebook receive received record recorded
    refund register remind remove rename reopen repair replace reply report request reschedule reset respond restore
    restart resume return reverse review ring rung run save say saying says schedule scheduled search see seems send
    sending sent serve set setting setup share show showing sign snapshot sold start started starting status stop
    submit submitted take taken taking tell text texted texting told try turn undo unassign update updated updating
    upload uploaded use verify view void voided wait want wanted wants was went win won work write""")

CONTACT_CUES = token_set("""phone ph mob mobile cell tel telephone number no num email e-mail mail address suburb postcode name customer client
    contact person caller owner homeowner tenant landlord details sms app website web site id lead leads
    pty ltd house place home office team""")

TITLES = token_set("mr mrs ms miss mx dr prof sir")
PARTICLES = token_set(
    "van von der den de del della di da dos du la le ter ten bin ibn al el st mac o'"
)

AMBIGUOUS_NAMES = token_set("""mark will bill grant rose may june april august chase drew rob pat sue frank dean jack art ray guy hope faith joy
    grace dawn summer penny lance wade heath miles rich josh cliff dale glen clay bob bo don neil nick ken max""")
"""Names first, when what stands around them says so."""

NEVER_NAMES = STOPWORDS | VERBS | CONTACT_CUES | MONTHS | WEEKDAYS
