"""Documents of agents as HTML: nothing of theirs runs, nothing is loaded, and no link leads anywhere unseen."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup

from podium.telling.untrusted import safe_text

LONGEST_RENDERED = 40_000
"""Characters. Some texts take time by the square of their length."""
_one_at_a_time = ThreadPoolExecutor(1, thread_name_prefix="podium-markdown")


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


async def rendered(text: str) -> Markup:
    """The document, safe to be put into a page. Of a long one the words as they are."""
    safe = safe_text(text)
    if len(safe) > LONGEST_RENDERED:
        return Markup("<pre>{}</pre>").format(safe)
    # The grammar can be made to take seconds: meanwhile all else goes on.
    loop = asyncio.get_running_loop()
    html = await loop.run_in_executor(_one_at_a_time, _MARKDOWN.render, safe)
    return Markup(html)  # noqa: S704 - the renderer escapes everything
