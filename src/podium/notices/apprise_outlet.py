"""An outlet behind an apprise URL: Telegram, Discord, Slack, ntfy, mail and a hundred others.

apprise is loaded in the thread that sends: it takes half a second, and those without notices never pay.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from podium.notices.medium import body_of, title_of
from podium.ports import Notice, Told

if TYPE_CHECKING:
    from apprise import Apprise, AppriseResult

SEND_SECONDS = 30.0
LONGEST_REASON = 300
_REFUSED = re.compile(r"error=4\d\d")
"""How apprise writes that a service itself said no."""
NO_SERVICE = "its value is no URL that apprise knows; its pages list them"


class AppriseOutlet:
    """Tells by one URL. A message is sent in a thread of its own, which nobody waits for longer than said."""

    def __init__(
        self,
        name: str,
        url: str,
        *,
        redact: Callable[[str], str],
        seconds: float = SEND_SECONDS,
    ) -> None:
        """`url` is a secret: of it nothing is ever shown."""
        self._name = name
        self._url = url
        self._redact = redact
        self._seconds = seconds
        self._thread: threading.Thread | None = None

    @property
    def name(self) -> str:
        return self._name

    async def tell(self, notice: Notice) -> Told:
        """Send it, and wait for the service's answer for some seconds."""
        if self._thread is not None and self._thread.is_alive():
            return Told(done=False, why="the message before is still on its way", in_doubt=True)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Told] = loop.create_future()

        def settle(told: Told) -> None:
            if not answer.done():
                answer.set_result(told)

        def work() -> None:
            told = self._sent(notice)
            try:
                loop.call_soon_threadsafe(settle, told)
            except RuntimeError:
                return  # the process ends, and the loop was closed before

        # A daemon: a service that never answers must not keep the process from ending.
        self._thread = threading.Thread(
            target=work, name=f"podium notice {self._name}", daemon=True
        )
        self._thread.start()
        try:
            async with asyncio.timeout(self._seconds):
                return await answer
        except TimeoutError:
            return Told(
                done=False, why=f"no answer within {self._seconds:g} seconds", in_doubt=True
            )

    def _sent(self, notice: Notice) -> Told:
        """In a thread of its own."""
        try:
            service = _service(self._url)
            if service is None:
                return Told(done=False, why=NO_SERVICE)
            result = service.notify(
                body=body_of(notice), title=title_of(notice), body_format="text"
            )
        except Exception as error:
            # Plugins of a hundred services: what one of them raises must not end the console.
            return Told(
                done=False, why=self._safe(f"{type(error).__name__}: {error}"), in_doubt=True
            )
        if result:
            return Told(done=True)
        return Told(done=False, why=self._why(result), in_doubt=_in_doubt(result))

    def _why(self, result: AppriseResult) -> str:
        said = "; ".join(entry.message for entry in result.logs())
        return self._safe(said) or "it was refused without a reason"

    def _safe(self, text: str) -> str:
        hidden = self._redact(text.replace(self._url, "…"))
        return " ".join(hidden.split())[:LONGEST_REASON]


def _service(url: str) -> Apprise | None:
    """None: no service has such a URL."""
    from apprise import Apprise, AppriseAsset, OverflowMode

    # Without a time limit of its own it sends in this thread, instead of one that the interpreter waits for at its end.
    asset = AppriseAsset(
        app_id="Podium", app_desc="Podium", storage_mode="memory", service_timeout=0
    )
    service = Apprise(asset=asset)
    if not service.add(url):
        return None
    for each in service:
        # What is longer than a service takes would be refused again and again.
        each.overflow_mode = OverflowMode.SPLIT
    return service


def _in_doubt(result: AppriseResult) -> bool:
    """Whether it may have arrived. apprise tells a line that was never there from one that broke off by nothing."""
    said = " ".join(entry.message for entry in result.logs())
    return _REFUSED.search(said) is None
