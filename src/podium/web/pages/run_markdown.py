"""Documents of agents as HTML: nothing of theirs runs, nothing is loaded, and no link leads anywhere unseen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup

from podium.telling.untrusted import safe_text


class _Renderer(RendererHTML):
    """Shows pictures as words, and links with where they lead."""

    def image(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        token = tokens[idx]
        words = f"[picture: {token.content or 'without words'}: {token.attrGet('src') or ''}]"
        return escapeHtml(words)

    def link_open(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        href = str(tokens[idx].attrGet("href") or "")
        if not href.startswith(("https://", "http://")):
            # A path of the branch: the console has nothing at such an address.
            return f'<span class="elsewhere" title="{escapeHtml(href)}">'
        place = escapeHtml(href)
        return (
            f'<a href="{place}" title="{place}" rel="noopener noreferrer nofollow" target="_blank">'
        )

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
    """A heading of the page's own part: documents begin below the page's headings."""
    return f"h{min(6, int(tag[1:]) + 2)}"


_MARKDOWN = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer).enable("table")


def rendered(text: str) -> Markup:
    """The document, safe to be put into a page."""
    return Markup(_MARKDOWN.render(safe_text(text)))  # noqa: S704 - the renderer escapes everything
