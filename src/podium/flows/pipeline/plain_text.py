"""Text of agents made fit for a document: it stays what it says and becomes nothing else."""

from __future__ import annotations

import hashlib
import html
import re
import unicodedata

_TAG_START = re.compile(r"<(?=[A-Za-z/!?])")
_BLOCK_MARKS = re.compile(
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
    return "".join(each for each in lines if each in "\n\t" or _is_seen(each))


def _is_seen(letter: str) -> bool:
    # ASCII is most of it, and looking letters up is slow.
    if letter.isascii():
        return letter.isprintable()
    return unicodedata.category(letter) not in ("Cc", "Cf", "Cs")


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
    while found := _BLOCK_MARKS.match(line):
        line = line[found.end() :]
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
    """What two wordings have in common that differ in case, spaces and punctuation. May be empty."""
    plain = unicodedata.normalize("NFKC", html.unescape(text)).casefold()
    return "".join(_WORDS.findall(plain))


def fingerprint(*parts: str) -> str:
    """A short name for the words."""
    data = "\0".join(parts).encode(errors="replace")
    return hashlib.sha256(data).hexdigest()[:16]
