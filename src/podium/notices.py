"""Outlets behind apprise URLs, the text of a notice for every medium, and the file that records what each outlet was sent.

apprise is loaded in the thread that sends: it takes half a second, and those without notices never pay.
"""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from podium.platform import make_private_folder
from podium.platform.atomic_write import atomic_write
from podium.platform.file_lock import take_file_lock
from podium.ports import DeliveryPosition, DeliveryStatus, Notice, NoticeItem

if TYPE_CHECKING:
    from apprise import Apprise, AppriseResult


MAX_TITLE = 120
MAX_TEXT = 700
"""Of one part."""

_TAMED = {
    "<": "‹",  # HTML; mentions and links of Slack and Discord
    ">": "›",
    "](": "] (",  # links of Markdown that show other words than where they lead
    "://": ":// ",  # addresses that a tap would open
    "@": "@ ",  # @everyone, @channel, @here
}


def title_of(notice: Notice) -> str:
    return tamed(notice.title)[:MAX_TITLE]


def body_of(notice: Notice) -> str:
    """Every part, a line between them empty. Only Podium's own links can be opened."""
    return "\n\n".join(map(_part, notice.parts))


def tamed(text: str) -> str:
    """The text without what one medium or another takes for markup that leads or calls somebody elsewhere."""
    for taken, replacement in _TAMED.items():
        text = text.replace(taken, replacement)
    return text


def _part(part: NoticeItem) -> str:
    text = tamed(part.text)
    shortened = text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
    return f"{shortened}\n{part.link}" if part.link else shortened


SEND_SECONDS = 30.0
MAX_REASON = 300
_REFUSED = re.compile(r"error=4\d\d")
"""The form in which apprise writes that a service itself refused."""
NO_SERVICE = "its value is not a URL that apprise supports; see the documentation of apprise"


class AppriseChannel:
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

    async def send(self, notice: Notice) -> DeliveryStatus:
        """Send it, and wait for the service's answer for some seconds."""
        if self._thread is not None and self._thread.is_alive():
            return DeliveryStatus(
                done=False, why="the previous message is still being sent", in_doubt=True
            )
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[DeliveryStatus] = loop.create_future()

        def settle(status: DeliveryStatus) -> None:
            if not answer.done():
                answer.set_result(status)

        def work() -> None:
            status = self._sent(notice)
            try:
                loop.call_soon_threadsafe(settle, status)
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
            return DeliveryStatus(
                done=False, why=f"no answer within {self._seconds:g} seconds", in_doubt=True
            )

    def _sent(self, notice: Notice) -> DeliveryStatus:
        """In a thread of its own."""
        try:
            service = _service(self._url)
            if service is None:
                return DeliveryStatus(done=False, why=NO_SERVICE)
            result = service.notify(
                body=body_of(notice), title=title_of(notice), body_format="text"
            )
        except Exception as error:
            # Plugins of a hundred services: what one of them raises must not end the console.
            return DeliveryStatus(
                done=False, why=self._safe(f"{type(error).__name__}: {error}"), in_doubt=True
            )
        if result:
            return DeliveryStatus(done=True)
        return DeliveryStatus(done=False, why=self._why(result), in_doubt=_in_doubt(result))

    def _why(self, result: AppriseResult) -> str:
        log_text = "; ".join(entry.message for entry in result.logs())
        return self._safe(log_text) or "it was refused without a reason"

    def _safe(self, text: str) -> str:
        hidden = self._redact(text.replace(self._url, "…"))
        return " ".join(hidden.split())[:MAX_REASON]


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
    for plugin in service:
        # What is longer than a service takes would be refused again and again.
        plugin.overflow_mode = OverflowMode.SPLIT
    return service


def _in_doubt(result: AppriseResult) -> bool:
    """Tell whether it may have arrived. apprise tells a line that was never there from one that broke off by nothing."""
    log_text = " ".join(entry.message for entry in result.logs())
    return _REFUSED.search(log_text) is None


_NOT_IN_FILE_NAMES = re.compile(r"[^A-Za-z0-9_.-]")


class FileDeliveryLog:
    """Marks in a folder of the project's state. Only the process that holds the folder may tell."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: int | None = None

    def try_hold(self) -> bool:
        """Tell whether this process is now the one that tells; it stays so until `let_go`, or until it dies."""
        if self._held is None:
            make_private_folder(self._folder)
            try:
                self._held = take_file_lock(self._folder / "lock")
            except BlockingIOError:
                return False
        return True

    def let_go(self) -> None:
        if self._held is not None:
            os.close(self._held)
            self._held = None

    def position(self, outlet: str) -> DeliveryPosition | None:
        """None also for a file that cannot be read: what is told then begins anew."""
        try:
            return DeliveryPosition.model_validate_json(self._file(outlet).read_bytes())
        except (OSError, ValidationError):
            return None

    def save(self, outlet: str, position: DeliveryPosition) -> None:
        """Store the position, whole or not at all. On return it survives a crash."""
        atomic_write(self._file(outlet), position.model_dump_json().encode())

    def _file(self, outlet: str) -> Path:
        return self._folder / f"{_NOT_IN_FILE_NAMES.sub('_', outlet)}.json"
