"""Text of agents and people: read as Markdown, made inert for documents, shortened for names of branches."""

from __future__ import annotations

import hashlib
import html
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

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


_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_NEVER_SHOWN = re.compile(
    r"""^[ ]{0,3} \[[^]\n]{1,200}\]: [ \t]* (?:\#|<\#?>) [ \t]+ (?:\([^()]*\)|"[^"]*"|'[^']*') [ \t]*$""",
    re.MULTILINE | re.VERBOSE,
)
"""A link definition that is used as a comment: `[//]: # (…)`."""


def visible(text: str) -> str:
    """The Markdown without comments, which its page does not show. Those in code are shown, and stay."""
    if "<!--" in text:
        text = _without_comments_of_html(text)
    return _NEVER_SHOWN.sub("", text)


def _without_comments_of_html(text: str) -> str:
    from markdown_it import MarkdownIt

    lines, parts, at = text.split("\n"), list[str](), 0
    for token in MarkdownIt("commonmark").parse(text):
        if token.type == "html_block":
            comments = _COMMENT.findall(token.content.rstrip("\n"))
        else:
            inline = (
                child.content for child in token.children or () if child.type == "html_inline"
            )
            comments = [content for content in inline if content.startswith("<!--")]
        if not comments or token.map is None:
            continue
        first, last = token.map
        parts += lines[at:first]
        # Lines of a quote begin with `>` in the text, and a comment of several lines has none of it.
        source = "\n".join(lines[first:last])
        cut = _cut_out(source, comments)
        parts.append(_cut_out(token.content, comments) or "" if cut is None else cut)
        at = last
    return "\n".join([*parts, *lines[at:]])


def _cut_out(text: str, pieces: Sequence[str]) -> str | None:
    """The text without these pieces, which are in it in this order. None: they are not."""
    kept = ""
    for piece in pieces:
        before, found, text = text.partition(piece)
        if not found:
            return None
        kept += before
    return kept + text


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


BOLD = 7
"""Level of a line that is bold from end to end: people use it as a heading below all others."""

_MAX_HEADING = 300
_FENCE = re.compile(r"\s*(`{3,}|~{3,})([^`]*)$")
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+|$)")
_BOLD = re.compile(r" {0,3}(?:\d{1,3}[.)][ \t]+)?(?:\*\*|__)([^*_]+)(?:\*\*|__)[ \t]*:?[ \t]*$")
_UNDERLINE = re.compile(r" {0,3}(=+|-{2,})[ \t]*$")
_ITEM = re.compile(r"([ \t]*)(?:[-*+•]|\d{1,9}[.)])[ \t]+(?:\[([ xX])\](?:[ \t]+|$))?")
_NOT_A_PARAGRAPH = re.compile(r"\s*(?:$|[-*+>|#]|\d{1,9}[.)]\s)")
_BREAK = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$")


@dataclass(frozen=True, slots=True)
class MarkdownLine:
    """A line without comments and, of a heading, without its marks."""

    text: str
    level: int = 0
    """Of a heading: 1 to 7. 0: it is none."""
    code: bool = False


_BLANK = MarkdownLine("")


@dataclass(slots=True)
class MarkdownBlock:
    """A list item or a paragraph, with all that belongs to it."""

    lines: list[str] = field(default_factory=list)
    is_item: bool = False
    checked: bool = False
    headings: tuple[MarkdownLine, ...] = ()
    """Those it stands under, the outermost first."""

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip()


def lines_of(text: str) -> list[MarkdownLine]:
    """The document's lines. Fence marks and comments are left out, code is marked as such."""
    lines: list[MarkdownLine] = []
    fence, in_comment = "", False
    for raw in _without_front_matter(text.splitlines()):
        if fence:
            if _closes(raw, fence):
                fence = ""
            else:
                lines.append(MarkdownLine(raw, code=True))
            continue
        if not raw.strip():
            # One says as much as many.
            if lines and lines[-1] is not _BLANK:
                lines.append(_BLANK)
            continue
        visible, in_comment = _without_comments(raw, in_comment)
        if opened := _FENCE.match(visible[:_MAX_HEADING]):
            fence = opened[1]
        elif visible.strip():
            _add(lines, visible)
    return lines


def _without_front_matter(lines: list[str]) -> list[str]:
    if not lines or lines[0].rstrip() != "---":
        return lines
    for number, line in enumerate(lines[1:200], start=1):
        if line.rstrip() == "---":
            return lines[number + 1 :]
    return lines


def _closes(line: str, fence: str) -> bool:
    marker = line.strip()
    return len(marker) >= len(fence) and marker == fence[0] * len(marker)


def _without_comments(line: str, in_comment: bool) -> tuple[str, bool]:
    """Text of the line outside of comments, and whether a comment continues after it."""
    parts: list[str] = []
    at = 0
    while True:
        if in_comment:
            end = line.find("-->", at)
            if end < 0:
                return "".join(parts), True
            at, in_comment = end + 3, False
        start = line.find("<!--", at)
        if start < 0:
            return "".join([*parts, line[at:]]), False
        parts.append(line[at:start])
        at, in_comment = start + 4, True


def _add(lines: list[MarkdownLine], line: str) -> None:
    if len(line) <= _MAX_HEADING:
        if atx := _ATX.match(line):
            heading = line[atx.end() :].rstrip().rstrip("#").rstrip()
            lines.append(MarkdownLine(heading, level=len(atx[1])))
            return
        if bold := _BOLD.match(line):
            lines.append(MarkdownLine(bold[1].strip(), level=BOLD))
            return
        if (underline := _UNDERLINE.match(line)) and _can_be_heading(lines):
            lines[-1] = MarkdownLine(
                lines[-1].text.strip(), level=1 if underline[1][0] == "=" else 2
            )
            return
    lines.append(MarkdownLine(line))


def _can_be_heading(lines: list[MarkdownLine]) -> bool:
    if not lines:
        return False
    last = lines[-1]
    free = not last.code and last.level in (0, BOLD) and len(last.text) <= _MAX_HEADING
    alone = len(lines) < 2 or not lines[-2].text.strip() or lines[-2].level > 0
    return free and alone and not _NOT_A_PARAGRAPH.match(last.text)


def blocks_of(lines: Iterable[MarkdownLine]) -> Iterator[MarkdownBlock]:
    """List items and paragraphs, each under its headings.

    Items within items belong to the outer one; what is checked off inside is left out.
    """
    reader = _BlockReader()
    for line in lines:
        if done := reader.take(line):
            yield done
    if reader.block.text:
        yield reader.block


class _BlockReader:
    def __init__(self) -> None:
        self.block = MarkdownBlock()
        self._headings: tuple[MarkdownLine, ...] = ()
        self._indent = 0
        self._blank = False
        self._skipped_indent: int | None = None

    def take(self, line: MarkdownLine) -> MarkdownBlock | None:
        """The block that ended before this line."""
        if line.level:
            outer = tuple(heading for heading in self._headings if heading.level < line.level)
            self._headings = (*outer, line)
            return self._begin()
        if line.code:
            self.block.lines.append(line.text)
            return None
        if not line.text.strip():
            self._blank = True
            return None
        return self._text(line.text)

    def _text(self, text: str) -> MarkdownBlock | None:
        after_blank, self._blank = self._blank, False
        indent = len(text) - len(text.lstrip())
        item = _ITEM.match(text)
        if item and not _BREAK.match(text[:_MAX_HEADING]):
            return self._item(text, item, indent)
        if self._skipped_indent is not None and indent > self._skipped_indent:
            return None
        self._skipped_indent = None
        belongs = self.block.lines and (
            not after_blank or (self.block.is_item and indent > self._indent)
        )
        done = None if belongs else self._begin()
        if not _BREAK.match(text[:_MAX_HEADING]):
            self.block.lines.append(text.strip())
        return done

    def _item(self, text: str, item: re.Match[str], indent: int) -> MarkdownBlock | None:
        checked = (item[2] or "").strip() != ""
        content = text[item.end() :].strip()
        if self.block.is_item and indent > self._indent:
            if self._skipped_indent is not None and indent > self._skipped_indent:
                return None
            self._skipped_indent = indent if checked else None
            if not checked:
                self.block.lines.append(content)
            return None
        self._skipped_indent = None
        done = self._begin(is_item=True, checked=checked)
        self._indent = indent
        self.block.lines.append(content)
        return done

    def _begin(self, *, is_item: bool = False, checked: bool = False) -> MarkdownBlock | None:
        done, self._blank = self.block, False
        self.block = MarkdownBlock(is_item=is_item, checked=checked, headings=self._headings)
        return done if done.text else None


LOOKED_AT = 2_000
"""Characters of a line that are looked at."""

_DECORATION = re.compile(r"^(?:\s*(?:[-*+•>|☐☑]|\d{1,9}[.)]|\[[ xX]?\])(?=\s|$|\|))+|[*_`~]+")
_PLACEHOLDER = re.compile(
    r"""(?: tb[adc]\b | to[- ]?do\b(?!\s+list) | fixme\b | wip\b | x{3,}\b | placeholder\b
        | to\s+be\s+(?:determined|decided|defined|done|added|written|filled|completed|confirmed|specified)\b
        | (?:to\s+)?fill\s+(?:this\s+|me\s+)?in\b | coming\s+soon\b | not\s+yet\s+(?:written|defined|known)\b
        | lorem\s+ipsum\b | (?:will|shall)\s+be\s+(?:added|written|defined|determined)\b )""",
    re.VERBOSE,
)
_IN_BRACKETS = re.compile(r"[<\[{(][^<>\[\]{}()]{0,200}[>\]})]\s*[.:]?$")
_NONE = re.compile(
    r"(?:none|n/?a|not applicable|nothing|no(?:ne)? (?:\w+ ){0,4}(?:needed|required))\b"
)
_DELIMITER_ROW = re.compile(r"\s*\|?(?:\s*:?-+:?\s*\|)+(?:\s*:?-+:?)?\s*$")


def bare(text: str) -> str:
    """The line's words without list marks and emphasis, in lower case."""
    return _DECORATION.sub("", text[:LOOKED_AT]).strip().casefold()


def says_something(text: str) -> bool:
    """True when the line has text other than a placeholder or `none`."""
    content = bare(text)
    if not any(character.isalnum() for character in content):
        return False
    if _NONE.fullmatch(content.rstrip(".! ")):
        return False
    # `<list the files>` is what a template leaves to be filled in; a link or a tuple is not.
    in_brackets = content[0] in "<{" and _IN_BRACKETS.fullmatch(content) and "://" not in content
    return not (_PLACEHOLDER.match(content) or in_brackets)


def says_none(text: str) -> bool:
    """True when the line says `none`, `n/a` or the like."""
    return _NONE.match(bare(text)) is not None


def cells_of(row: str) -> list[str]:
    """The cells of a table's row."""
    return [cell.strip() for cell in row[:LOOKED_AT].strip().strip("|").split("|")]


def is_delimiter(text: str) -> bool:
    """True for the delimiter row below a table's head."""
    return "|" in text and "-" in text and _DELIMITER_ROW.match(text[:LOOKED_AT]) is not None


def solid(body: Sequence[MarkdownLine]) -> Iterator[MarkdownLine]:
    """Lines that can hold something: no headings, and of tables no heads."""
    for number, line in enumerate(body):
        if line.level:
            continue
        follows = body[number + 1].text if number + 1 < len(body) else ""
        if (
            not line.code
            and "|" in line.text
            and (is_delimiter(line.text) or is_delimiter(follows))
        ):
            continue
        if "|" in line.text and line.text.lstrip().startswith("|"):
            yield MarkdownLine(
                " ".join(cell for cell in cells_of(line.text) if says_something(cell))
            )
        else:
            yield line
