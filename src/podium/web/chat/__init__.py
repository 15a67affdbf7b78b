"""Chat interface: webhooks that authenticate the sender, and links from notices. No cookies, no console tokens."""

from podium.web.chat.links import link_paths, links_router
from podium.web.chat.webhooks import chat_router

__all__ = ["chat_router", "link_paths", "links_router"]
