"""Agents' text made inert for documents, and short names for branches and folders."""

from __future__ import annotations

import hashlib
import html
import re
import unicodedata

_TAG_START = re.compile(r"<(?=[A-Za-z/!?])")
_BLOCK_MARKERS = re.compile(
    r"""(?: (?: \#{1,6} | > | [-*+] | \d{1,9}[.)] | \[[ xX]?\] ) (?:\s+|$) | [-=_*]{3,}\s* )+""",
    re.VERBOSE,
)
_FENCES = re.compile(r"`{3,}|~{3,}")
_BACKTICKS = re.compile(r"`+")
_WORDS = re.compile(r"[^\W_]+[+#]*")
_SENTENCE_END = re.compile(r"\n|[.!?](?=\s)")
_WORD_END = re.compile(r"\s")
_LINE_ENDS = re.compile(r"\r\n?|[\u2028\u2029\x0b\x0c\x85]")


def whole(text: str) -> str:
    """The text without control and direction characters, with plain line ends.

    Terminal escapes and characters that turn the reading direction can make a reader see something
    else than what stands there.
    """
    lines = _LINE_ENDS.sub("\n", text.encode(errors="replace").decode())
    return "".join(
        character for character in lines if character in "\n\t" or _is_visible(character)
    )


def _is_visible(character: str) -> bool:
    # ASCII is most of it, and looking letters up is slow.
    if character.isascii():
        return character.isprintable()
    return unicodedata.category(character) not in ("Cc", "Cf", "Cs")


def one_line(text: str, most: int) -> str:
    """The text on one line of at most so many characters."""
    return shortened(" ".join(whole(text.strip()[: most * 4]).split()), most)


def shortened(text: str, most: int) -> str:
    """The text; of a longer one its beginning, to the end of a line, a sentence or at least a word, and `…`."""
    if len(text) <= most:
        return text
    head = text[: max(0, most - len(" …"))]
    for end in (_SENTENCE_END, _WORD_END):
        ends = [match.end() for match in end.finditer(head, len(head) // 2)]
        if ends:
            return f"{head[: ends[-1]].rstrip()} …"
    return text[: max(0, most - 1)].rstrip() + "…"


def harmless(text: str, most: int) -> str:
    """The text on one line that is no heading, list, fence, image or HTML in Markdown."""
    line = one_line(text, most)
    while match := _BLOCK_MARKERS.match(line):
        line = line[match.end() :]
    line = _FENCES.sub("`", line).replace("![", "[")
    return _TAG_START.sub("&lt;", line).strip()


def fenced(text: str, info: str = "text") -> str:
    """The text as a code block that nothing in it can end."""
    body = whole(text).rstrip("\n")
    longest = max((len(run) for run in _BACKTICKS.findall(body)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{info}\n{body}\n{fence}"


def in_code(text: str, most: int = 300) -> str:
    """The text on one line as a code span that nothing in it can end."""
    line = one_line(text, most)
    if not line:
        return ""
    longest = max((len(run) for run in _BACKTICKS.findall(line)), default=0)
    ticks = "`" * (longest + 1)
    gap = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{gap}{line}{gap}{ticks}"


def key_of(text: str) -> str:
    """Key of a text that ignores case, spaces and punctuation. May be empty."""
    plain = unicodedata.normalize("NFKC", html.unescape(text)).casefold()
    return "".join(_WORDS.findall(plain))


def fingerprint(*parts: str) -> str:
    """A short name for the words."""
    data = "\0".join(parts).encode(errors="replace")
    return hashlib.sha256(data).hexdigest()[:16]


MAX_LENGTH = 40
NAMELESS = "task"

_READ = 2_000
"""Characters of a task that are looked at: a name needs its beginning alone."""
_APOSTROPHES = re.compile(r"(?<=[a-z])['’ʼ](?=[a-z])")
_BETWEEN = re.compile(r"[^a-z0-9]+")

# Letters that do not come apart into a Latin one and its marks.
_LATIN = str.maketrans(
    {"ß": "ss", "ø": "o", "æ": "ae", "œ": "oe", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i"}
)
_CYRILLIC = (
    "абвгдеёжзийклмнопрстуфхцчшщъыьэюяіїєґ",
    "a b v g d e e zh z i i k l m n o p r s t u f kh ts ch sh shch _ y _ e yu ya i i e g",
)
_GREEK = (
    "αβγδεζηθικλμνξοπρσςτυφχψω",
    "a v g d e z i th i k l m n x o p r s s t y f ch ps o",
)
_OTHER = str.maketrans(
    {
        character: latin.strip("_")
        for alphabet, sounds in (_CYRILLIC, _GREEK)
        for character, latin in zip(alphabet, sounds.split(), strict=True)
    }
)


def slug_of(task: str) -> str:
    """Lower-case ASCII letters, digits and single dashes; `task` where no letter can be written so."""
    words = [word for word in _BETWEEN.split(ascii_of(task.strip()[:_READ])) if word]
    slug = ""
    for word in words:
        longer = f"{slug}-{word}" if slug else word[:MAX_LENGTH]
        if len(longer) > MAX_LENGTH:
            break
        slug = longer
    return slug or NAMELESS


def ascii_of(text: str) -> str:
    """The text in lower case with letters of other alphabets written in Latin ones, where that goes."""
    lower = unicodedata.normalize("NFKC", text).casefold().translate(_LATIN).translate(_OTHER)
    apart = unicodedata.normalize("NFKD", lower).translate(_OTHER)
    plain = "".join(character for character in apart if not unicodedata.combining(character))
    return _APOSTROPHES.sub("", plain)
