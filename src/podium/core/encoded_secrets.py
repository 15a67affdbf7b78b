"""Known secret values in other encodings than their own.

A text is looked at as it is and with its escapes undone, a few times over: percent-encoding, HTML entities, `\\u`, `\\x`,
octal, full-width letters; each time also without what lays text out: colours of terminals, tags, numbers of lines, the columns
of a hex dump. At each of these levels everything that can separate the characters of a value is dropped (blanks, line
breaks, punctuation, zero-width characters), and what is left is searched for fixed needles: the value itself, its
hex, its base64 at each of three alignments, the same of these once more, and so on. All of it is searching and translating
bytes, so that time is linear in the length of the text; positions are worked out only where there is something to hide.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
from array import array
from base64 import a85encode, b32encode, b64encode, b85encode
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import accumulate, compress
from operator import itemgetter
from struct import Struct

MAX_LEVELS = 4
"""Rounds in which escapes are undone: an escape of an escape takes two."""
MIN_MIXED_CORE = 12
"""Letters and digits that a value needs to be known whatever stands between them. A shorter one could be prose."""
MIN_WORDLIKE_CORE = 16
"""The same for a value of letters alone, or of digits alone."""
MIN_SQUEEZED = 12
"""Characters that a value needs to be known with blanks between them."""
MIN_FOLDED = 8
"""Characters that a value needs to be known in another case."""
MIN_EXACT = 6
"""Characters that a value needs to be known in an encoding."""
MIN_BASE64 = 7
"""Characters of base64 that a value alone decides: those of the shortest secret there is."""
MAX_SPELLING = 6
"""Characters of the usual escapes for one of a value: `\\u0041`, `&#x41;`."""

_EDGE_BASE64 = 64
"""Characters of base64 on either side of a value that are hidden with it: the nearest hold bits of it."""
_EDGE_BASE85 = 5
_BLOCK = 1 << 16
_GRAM = 8
_MIN_SAMPLED = 2 * _GRAM
"""Needles at least this long are known by one of their grams, which a few samples of a text cannot miss."""
_BLANK_ESCAPE = re.compile(rb"\\[nrtbfv]")
_BLANK_ESCAPES = (b"\\n", b"\\r", b"\\b", b"\\f", b"\\v")
_NUMBER = rb"(?:\{0*+[0-9A-Fa-f]{1,6}\}"
_ESCAPES = (
    (
        b"\\",
        re.compile(
            rb"\\(?=[uUx0-7])(?:u" + _NUMBER + rb"|u*+[0-9A-Fa-f]{4})|U[0-9A-Fa-f]{8}"
            rb"|x" + _NUMBER + rb"|[0-9A-Fa-f]{2})|0[0-3][0-7]{2}|[0-3]?[0-7]{2}|0)"
        ),
    ),
    (b"%", re.compile(rb"%(?:[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4})")),
    (
        b"&",
        re.compile(rb"&(?:#0*+[0-9]{1,7};?|#[xX]0*+[0-9A-Fa-f]{1,6};?|[A-Za-z][A-Za-z0-9]{1,31};)"),
    ),
    (b"0x", re.compile(rb"0x(?=[0-9A-Fa-f]{2})")),
    (b"0X", re.compile(rb"0X(?=[0-9A-Fa-f]{2})")),
    (b"\xef", re.compile(rb"\xef[\xbc\xbd][\x80-\xbf]")),  # full-width letters
    (b"\xf0\x9d", re.compile(rb"\xf0\x9d[\x90-\x9f][\x80-\xbf]")),  # mathematical ones
)
"""The beginning of each kind, and its form. How many backslashes stand there does not matter: quoted again, they
double, and what is left of them is dropped as a separator."""
_LINE_START = b"\n\x00"
"""Stands in for an address or a number at the beginning of a line that was taken out."""
_LAYOUT = (
    (b"\x1b", re.compile(rb"\x1b\[[0-9;:?]{0,40}+[A-Za-z]")),
    (b"<", re.compile(rb"</?[A-Za-z][^<>\n]{0,200}+>")),
    (
        b"\n",
        re.compile(
            rb"\n[ \t]{0,8}+(?:[0-9A-Fa-f]{4,16}+|[0-9]{1,3}+)(?:[ \t:.|)]{1,4}|\xe2\x86\x92)"
        ),
    ),
    # The characters that a hex dump has behind the bytes of the line before.
    (_LINE_START, re.compile(rb"  (?<=[0-9A-Fa-f]  ) ?[^\n]{1,18}\n(?=\x00)")),
)
"""Layout between the pieces of a value: what each kind begins with or needs, and its form."""
_DIGITS = b"0123456789"
_ALPHABET = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_BETWEEN_TOKENS = b"-_. "
_BASE64 = frozenset(_ALPHABET + _DIGITS + b"+/-_=")
_VISIBLE = frozenset(range(0x21, 0x7F))
_LAST_COLUMN = re.compile(rb"(?<=[0-9A-Fa-f]) {2,64}[^\n]{1,18}(?![^\n])")
"""The column of a hex dump behind the last bytes: the characters themselves."""


class _ByteView:
    """One way of looking at bytes: in one case or in both, and without those that may separate a value's characters."""

    def __init__(self, *, folded: bool, deleted: bytes = b"") -> None:
        self._table = bytes(range(256)).lower() if folded else None
        self._deleted = deleted
        self._keep_table = bytes(0 if byte in deleted else 1 for byte in range(256))

    def of(self, data: bytes) -> bytes:
        return data.translate(self._table, self._deleted)

    def positions(self, block: bytes) -> Sequence[int]:
        """The position of each byte of the view in the block."""
        if not self._deleted:
            return range(len(block))
        return array("L", compress(range(len(block)), block.translate(self._keep_table)))


class _BlockPositions:
    """Positions of a view's bytes in the data, worked out for one block at a time."""

    def __init__(self, view: _ByteView, data: bytes) -> None:
        self._view, self._data = view, data
        sizes = (len(view.of(data[at : at + _BLOCK])) for at in range(0, len(data), _BLOCK))
        self._begins = list(accumulate(sizes, initial=0))
        self._number, self._block = -1, view.positions(b"")

    def __getitem__(self, index: int) -> int:
        number = bisect_right(self._begins, index) - 1
        if number != self._number:
            start = number * _BLOCK
            self._number = number
            self._block = self._view.positions(self._data[start : start + _BLOCK])
        return number * _BLOCK + self._block[index - self._begins[number]]


_SEPARATORS = bytes(byte for byte in range(256) if byte not in _ALPHABET + _DIGITS)
_BLANKS = bytes(byte for byte in range(256) if not 0x20 < byte < 0x7F)
_EXACT = _ByteView(folded=False)
_FOLDED = _ByteView(folded=True)
_SQUEEZED = _ByteView(folded=True, deleted=_BLANKS)
_SOLID = _ByteView(folded=False, deleted=_SEPARATORS)
_FOLDED_SOLID = _ByteView(folded=True, deleted=_SEPARATORS)


@dataclass(frozen=True)
class _Needle:
    view: _ByteView
    content: bytes
    name: str
    edge: int = 0
    """Characters beside it that are to be hidden with it, as long as they are `around`."""
    around: frozenset[int] = _BASE64


class EncodedSecrets:
    """Finds and hides values that are written in another encoding, in another case, or in pieces.

    Immutable, and safe to share between threads. What is written as it is must be looked for elsewhere: here it is
    known too, but only from a certain length.
    """

    def __init__(self, values: Collection[tuple[str, str]], reserved: Collection[str] = ()) -> None:
        """`values` are pairs of a name and a value of at least six characters; of a value with several names
        the first is shown. Nothing is hidden that is a part of a `reserved` word."""
        literals = [literal.encode() for literal in reserved]
        taken = cache(lambda view: b"\n".join(map(view.of, literals)))
        needles: dict[tuple[_ByteView, bytes], _Needle] = {}
        for name, value in values:
            for needle in _needles(name, value.encode(errors="surrogatepass")):
                if needle.content not in taken(needle.view):
                    needles.setdefault((needle.view, needle.content), needle)
        views = (_SOLID, _FOLDED_SOLID, _SQUEEZED, _FOLDED, _EXACT)
        grouped = [(view, [n for n in needles.values() if n.view is view]) for view in views]
        self._grouped = [(view, group) for view, group in grouped if group]
        self._samples = _NeedleSampler([n.content.lower() for n in needles.values() if _is_long(n)])
        short = [(view, [n.content for n in group if not _is_long(n)]) for view, group in grouped]
        self._short = [(view, contents) for view, contents in short if contents]
        self.longest = max((MAX_SPELLING * len(value) for _, value in values), default=0)

    def may_be_in(self, text: str) -> bool:
        """Tell whether there is anything to hide, in plain text and in serialised JSON alike. Cheap."""
        if not self._grouped:
            return False
        return any(map(self._may_be_at, _levels(text.encode(errors="surrogatepass"))))

    def _may_be_at(self, level: bytes) -> bool:
        for view, contents in self._short:
            looked_at = view.of(level)
            for content in contents:
                if content in looked_at:
                    return True
        return self._samples.may_be_in(level) and self._is_at(level)

    def _is_at(self, level: bytes) -> bool:
        return any(
            needle.content in looked_at
            for view, group in self._grouped
            for looked_at in [view.of(level)]
            for needle in group
        )

    def names_in(self, text: str) -> tuple[str, ...]:
        """The names of the values that are in the text."""
        names: dict[str, None] = {}
        if not self._grouped:
            return ()
        for level in filter(self._may_be_at, _levels(text.encode(errors="surrogatepass"))):
            for view, group in self._grouped:
                looked_at = view.of(level)
                names.update((needle.name, None) for needle in group if needle.content in looked_at)
        return tuple(names)

    def hide(self, text: str) -> str:
        """The text with `[redacted:NAME]` for every such value."""
        if not self.may_be_in(text):
            return text
        data = text.encode(errors="surrogatepass")
        pieces, behind = [], 0
        for start, end, name in _merged(sorted(self._spans(data))):
            pieces += [data[behind:start], f"[redacted:{name}]".encode()]
            behind = end
        return b"".join((*pieces, data[behind:])).decode(errors="surrogatepass")

    def _spans(self, data: bytes) -> Iterator[tuple[int, int, str]]:
        """Start, end and name of everything to hide; they may overlap."""
        maps: list[_PositionMap] = []
        for level in _levels(data, maps):
            for view, group in self._grouped:
                looked_at = view.of(level)
                hits = [(at, n) for n in group for at in _occurrences(n.content, looked_at)]
                positions = _BlockPositions(view, level) if hits else ()
                for at, needle in sorted(hits, key=itemgetter(0)):
                    first, last = positions[at], positions[at + len(needle.content) - 1]
                    first, last = _widened(level, first, last, needle)
                    for step in reversed(maps):
                        first, last = step.start_of(first), step.end_of(last)
                    column = _LAST_COLUMN.match(data, last + 1)
                    yield first, column.end() if column else last + 1, needle.name


class _PositionMap:
    """From positions behind the undoing of escapes to those before it."""

    def __init__(self, escapes: Sequence[tuple[int, int, int]]) -> None:
        """`escapes` are start, end and length of what came out of each."""
        self._escapes = escapes
        shrunk = accumulate((end - start - size for start, end, size in escapes), initial=0)
        # `shrunk` is how much was lost before each escape.
        self._begins = [start - lost for (start, _, _), lost in zip(escapes, shrunk, strict=False)]

    def start_of(self, position: int) -> int:
        return self._before(position)[0]

    def end_of(self, position: int) -> int:
        return self._before(position)[1]

    def _before(self, position: int) -> tuple[int, int]:
        """First and last position of what this byte came from."""
        index = bisect_right(self._begins, position) - 1
        if index < 0:
            return position, position
        start, end, size = self._escapes[index]
        behind = position - self._begins[index]
        if behind < size:
            return start, end - 1
        return end + behind - size, end + behind - size


class _NeedleSampler:
    """A quick answer to whether one of many long needles may be in a text.

    Of the text only every so many bytes a gram is looked at: so close together that each needle holds one of them whole.
    """

    def __init__(self, contents: Sequence[bytes]) -> None:
        stride = max(_GRAM, min(map(len, contents), default=0) - _GRAM + 1)
        self._samples = Struct(f"{_GRAM}s{stride - _GRAM}x")
        # Wherever a needle lies, one of the samples begins less than a stride behind its beginning.
        self._grams = {(content[at : at + _GRAM],) for content in contents for at in range(stride)}

    def may_be_in(self, level: bytes) -> bool:
        if not self._grams:
            return False
        solid = _FOLDED_SOLID.of(level)
        solid += bytes(-len(solid) % self._samples.size)
        return not self._grams.isdisjoint(self._samples.iter_unpack(solid))


def _is_long(needle: _Needle) -> bool:
    return needle.view in (_SOLID, _FOLDED_SOLID) and len(needle.content) >= _MIN_SAMPLED


def _levels(data: bytes, maps: list[_PositionMap] | None = None) -> Iterator[bytes]:
    """The bytes as they are, then with their escapes undone, again and again while there are any; and each of
    these without its layout.

    With `maps`, what leads from each level to the one before is added there.
    """
    yield from _with_and_without_layout(data, maps)
    for _ in range(MAX_LEVELS):
        before, data = data, _without_blank_escapes(data, maps)
        only_blanks = data
        for beginning, escape in _ESCAPES:
            if beginning in data:
                _note(maps, escape, data, _undone)
                data = escape.sub(_undone, data)
        if data != before:
            yield from _with_and_without_layout(data, maps)
        if data == only_blanks:
            return


def _with_and_without_layout(data: bytes, maps: list[_PositionMap] | None) -> Iterator[bytes]:
    """The bytes, and what is left of them as one kind of layout after the other is taken out."""
    yield data
    map_count = len(maps or ())
    for beginning, form in _LAYOUT:
        if beginning in data:
            before = data
            _note(maps, form, before, _without)
            data = form.sub(_without, before)
            if data != before:
                yield data
    if maps is not None:
        del maps[map_count:]


def _without(match: re.Match[bytes]) -> bytes:
    return _LINE_START if match[0].startswith(b"\n") else b""


def _without_blank_escapes(data: bytes, maps: list[_PositionMap] | None) -> bytes:
    """By far the most frequent escapes: replacing them one by one is quicker than asking what each means."""
    if b"\\" in data:
        _note(maps, _BLANK_ESCAPE, data, lambda match: b"\n")
        for escape in _BLANK_ESCAPES:
            data = data.replace(escape, b"\n")
        data = data.replace(b"\\t", b"\t")
    return data


def _note(
    maps: list[_PositionMap] | None,
    escape: re.Pattern[bytes],
    data: bytes,
    undone: Callable[[re.Match[bytes]], bytes],
) -> None:
    if maps is not None:
        maps.append(
            _PositionMap([(m.start(), m.end(), len(undone(m))) for m in escape.finditer(data)])
        )


def _undone(match: re.Match[bytes]) -> bytes:
    return _meaning(match[0].lstrip(b"\\"))


@lru_cache(maxsize=2048)
def _meaning(escape: bytes) -> bytes:
    """The bytes that an escape, without its backslashes, stands for."""
    kind, digits = escape[:1], escape[1:].strip(b"{}ux")
    if kind >= b"\x80":
        plain = unicodedata.normalize("NFKC", escape.decode())
        return plain.encode() if plain.isascii() else escape
    if kind == b"&":
        return html.unescape(escape.decode()).encode(errors="surrogatepass")
    if escape in (b"0x", b"0X"):  # hex with a mark before each byte is hex
        return b""
    if kind in b"x%" and len(escape) == 3:
        return bytes([int(digits, 16)])
    if kind in b"%uUx":
        number = int(digits, 16)
        return chr(number).encode(errors="surrogatepass") if number < 0x110000 else b""
    return bytes([int(escape, 8)]) if len(escape) > 1 else b"\n"


def _needles(name: str, value: bytes) -> Iterator[_Needle]:
    for text in {value, *_encoded_once(value)}:
        edge = 0 if text == value else _EDGE_BASE64
        yield _Needle(_FOLDED_SOLID, text.hex().encode(), name, edge)
        for content in map(_SOLID.of, _base64_cores(text)):
            if len(content) >= MIN_BASE64:
                yield _Needle(_SOLID, content, name, edge=_EDGE_BASE64)
    for content in (*_base32_cores(value), *_lists_of_bytes(value)):
        if len(content) >= _MIN_SAMPLED:
            yield _Needle(_FOLDED_SOLID, content.lower(), name, edge=_EDGE_BASE64)
    for content in map(_FOLDED_SOLID.of, _base85_groups(value)):
        if len(content) >= _MIN_SAMPLED:
            yield _Needle(_FOLDED_SOLID, content, name, edge=_EDGE_BASE85, around=_VISIBLE)
    view = _loosest_view(value)
    # The value may hold what looks like an escape, or what JSON escapes.
    as_json = json.dumps(value.decode(errors="replace"), ensure_ascii=False).encode()[1:-1]
    for written in {as_json, *_levels(value)}:
        if len(view.of(written)) >= MIN_EXACT:
            yield _Needle(view, view.of(written), name)
    if view is _FOLDED_SOLID:
        yield _Needle(view, view.of(value)[::-1], name)


def _encoded_once(value: bytes) -> Iterator[bytes]:
    """Texts that may be encoded in base64 or hex in place of the value: its base64, its hex, UTF-16."""
    for core in _base64_cores(value):
        yield from (core, core.replace(b"+", b"-").replace(b"/", b"_"))
    yield from (value.hex().encode(), value.hex().upper().encode())
    # Without the last byte it is a part of both byte orders.
    text = value.decode(errors="surrogatepass")
    yield text.encode("utf-16-le", errors="surrogatepass")[:-1]


def _base32_cores(value: bytes) -> Iterator[bytes]:
    """As `_base64_cores`."""
    for shift in range(5):
        first, behind = -(-8 * shift // 5), 8 * (shift + len(value)) // 5
        yield b32encode(bytes(shift) + value)[first:behind]


def _base85_groups(value: bytes) -> Iterator[bytes]:
    """The groups of base85 that lie within the value, at each of its four alignments."""
    for skipped in range(4):
        whole = value[skipped : skipped + (len(value) - skipped) // 4 * 4]
        yield from (b85encode(whole), a85encode(whole))


def _lists_of_bytes(value: bytes) -> Iterator[bytes]:
    """Decimal and octal numbers."""
    for form in ("{}", "{:03}", "{:03o}"):
        yield "".join(map(form.format, value)).encode()


def _base64_cores(value: bytes) -> Iterator[bytes]:
    """The characters of base64 that the value alone decides when none, one or two bytes stand before it."""
    for shift in range(3):
        first, behind = -(-8 * shift // 6), 8 * (shift + len(value)) // 6
        yield b64encode(bytes(shift) + value)[first:behind]


def _loosest_view(value: bytes) -> _ByteView:
    """The view that forgives most, of those in which this value cannot be taken for ordinary words."""
    core = _SOLID.of(value)
    kinds = [
        any(byte in _ALPHABET for byte in value),
        any(byte in _DIGITS for byte in value),
        any(
            0x20 < byte < 0x7F and byte not in _ALPHABET + _DIGITS + _BETWEEN_TOKENS
            for byte in value
        ),
    ]
    if len(core) >= (MIN_MIXED_CORE if kinds[0] and kinds[1] else MIN_WORDLIKE_CORE):
        return _FOLDED_SOLID
    if sum(kinds) < 2:
        return _EXACT
    if len(_SQUEEZED.of(value)) >= MIN_SQUEEZED:
        return _SQUEEZED
    return _FOLDED if len(value) >= MIN_FOLDED else _EXACT


def _occurrences(content: bytes, data: bytes) -> Iterator[int]:
    """Yield the starts of occurrences. What two of them share belongs to the first."""
    at = data.find(content)
    while at >= 0:
        yield at
        at = data.find(content, at + len(content))


def _widened(data: bytes, first: int, last: int, needle: _Needle) -> tuple[int, int]:
    """With more of the same encoding on either side; the letter of an escape is none."""
    lowest, highest = max(0, first - needle.edge), min(len(data) - 1, last + needle.edge)
    around = needle.around
    while first > lowest and data[first - 1] in around and data[first - 2 : first - 1] != b"\\":
        first -= 1
    while last < highest and data[last + 1] in around:
        last += 1
    return first, last


def _merged(spans: Sequence[tuple[int, int, str]]) -> Iterator[tuple[int, int, str]]:
    """Sorted spans without overlaps; the first name is that of all that overlap."""
    current: tuple[int, int, str] | None = None
    for start, end, name in spans:
        if current is not None and start < current[1]:
            current = (current[0], max(current[1], end), current[2])
            continue
        if current is not None:
            yield current
        current = (start, end, name)
    if current is not None:
        yield current
