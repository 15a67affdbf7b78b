"""Agents' Markdown as inert HTML, and diffs by file and line."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup

from podium.render.text import escaped_line, escaped_text, safe_text

MAX_RENDERED = 40_000
"""Maximum characters; some texts take quadratic time."""
_one_at_a_time = ThreadPoolExecutor(1, thread_name_prefix="podium-markdown")


class _Renderer(RendererHTML):
    """Renders images as text, and links with their target."""

    def image(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        token = tokens[idx]
        text = f"[image: {token.content or 'no description'}: {token.attrGet('src') or ''}]"
        return escapeHtml(text)

    def link_open(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        href = str(tokens[idx].attrGet("href") or "")
        if not href.startswith(("https://", "http://")):
            # A path of the branch: the console has nothing at such an address.
            return f'<span class="elsewhere" title="{escapeHtml(href)}">'
        url = escapeHtml(href)
        return f'<a href="{url}" title="{url}" rel="noopener noreferrer nofollow" target="_blank">'

    def link_close(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        depth = 0
        for token in reversed(tokens[:idx]):
            depth += {"link_close": 1, "link_open": -1}.get(token.type, 0)
            if depth < 0:
                href = str(token.attrGet("href") or "")
                return "</a>" if href.startswith(("https://", "http://")) else "</span>"
        return ""

    def heading_open(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return f"<{_lower(tokens[idx].tag)}>"

    def heading_close(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return f"</{_lower(tokens[idx].tag)}>\n"


def _lower(tag: str) -> str:
    """Lower a heading by two levels: documents begin below the page's headings."""
    return f"h{min(6, int(tag[1:]) + 2)}"


_MARKDOWN = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer).enable("table")


async def rendered(text: str) -> Markup:
    """Render the document as safe HTML; a long one as plain text."""
    safe = safe_text(text)
    if len(safe) > MAX_RENDERED:
        return Markup("<pre>{}</pre>").format(safe)
    # The grammar can be made to take seconds: meanwhile all else goes on.
    loop = asyncio.get_running_loop()
    html = await loop.run_in_executor(_one_at_a_time, _MARKDOWN.render, safe)
    return Markup(html)  # noqa: S704 - the renderer escapes everything


MAX_LINES = 4000
"""Maximum lines, over all files."""
MAX_LINE = 500

Tone = Literal["added", "gone", "hunk", "same"]


@dataclass
class FileDiff:
    """Changes in one file."""

    name: str
    lines: list[tuple[Tone, str]] = field(default_factory=list)
    added: int = 0
    gone: int = 0


@dataclass(frozen=True)
class Diff:
    files: tuple[FileDiff, ...]
    cut: bool
    """True when there is more than is shown."""


def read_diff(text: str, *, cut: bool = False) -> Diff:
    """Parse a diff into files, up to the limit."""
    files: list[FileDiff] = []
    in_hunk = False
    lines = text.split("\n")
    for line in lines[:MAX_LINES]:
        if line.startswith("diff --git "):
            files.append(FileDiff(_named(line)))
            in_hunk = False
        elif files:
            in_hunk = in_hunk or line.startswith("@@")
            _take(files[-1], line, in_hunk=in_hunk)
    return Diff(tuple(files), cut=cut or len(lines) > MAX_LINES)


def _take(file: FileDiff, line: str, *, in_hunk: bool) -> None:
    tone = _tone(line) if in_hunk else "same"
    if not in_hunk and line.startswith(("index ", "--- ", "+++ ")):
        return
    file.added += tone == "added"
    file.gone += tone == "gone"
    file.lines.append((tone, escaped_text(line[:MAX_LINE]) + "…" * (len(line) > MAX_LINE)))


def _tone(line: str) -> Tone:
    tones: Iterable[tuple[str, Tone]] = (("+", "added"), ("-", "gone"), ("@@", "hunk"))
    return next((tone for prefix, tone in tones if line.startswith(prefix)), "same")


def _named(line: str) -> str:
    """Return the file name of a `diff --git` line, which contains it twice."""
    both = line.removeprefix("diff --git ")
    half = both[: len(both) // 2]
    same = both[len(half) :].strip()
    if half.removeprefix('"').removeprefix("a/") == same.removeprefix('"').removeprefix("b/"):
        return escaped_line(half.removeprefix("a/"), MAX_LINE)
    return escaped_line(both, MAX_LINE)
