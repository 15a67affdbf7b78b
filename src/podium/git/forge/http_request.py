"""One request to an HTTP API: bounded in time and size, never redirected to another host."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from typing import Any, TypeVar
from urllib.parse import urlencode, urljoin, urlsplit

from podium.core.errors import BadInput, ForgeUnavailable
from podium.core.model import Json
from podium.git.forge.remotes import plain

_MAX_BYTES = 8_000_000
_MAX_REDIRECTS = 3
_KEEPS_METHOD = (307, 308)
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Answer:
    """Response of an untrusted server: validate the body before use."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes

    def json(self) -> Json:
        """None where the body is no JSON."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None


class _AnyStatus(urllib.request.HTTPErrorProcessor):
    """Hands every answer over as it is: no error for a status, and no redirect followed with our headers."""

    def http_response(self, request: Any, response: Any) -> Any:
        return response

    https_response = http_response


class Line:
    """Asks one API. The token goes to that API's host and nowhere else."""

    def __init__(self, base_url: str, headers: Mapping[str, str], *, seconds: float) -> None:
        self._base_url = _checked(base_url).rstrip("/")
        self._headers = dict(headers)
        self._seconds = seconds

    async def ask(
        self, method: str, path: str, *, query: Mapping[str, str] | None = None, body: Json = None
    ) -> Answer:
        """The answer, whatever its status. Raises `ForgeUnavailable` when none came."""
        url = f"{self._base_url}{path}" + (f"?{urlencode(query)}" if query else "")
        data = None if body is None else json.dumps(body).encode()
        try:
            async with asyncio.timeout(self._seconds):
                return await _in_thread(lambda: self._followed(method, url, data))
        except TimeoutError:
            why = f"there was no whole answer within {self._seconds:g} seconds"
        except (OSError, HTTPException, ValueError) as error:
            why = _reason(error)
        raise ForgeUnavailable(f"{self.host} could not be reached: {why}")

    @property
    def host(self) -> str:
        return urlsplit(self._base_url).netloc

    def _followed(self, method: str, url: str, data: bytes | None) -> Answer:
        deadline = time.monotonic() + self._seconds
        for _ in range(_MAX_REDIRECTS + 1):
            answer = self._once(method, url, data, deadline)
            target = answer.headers.get("location", "")
            if answer.status not in (301, 302, *_KEEPS_METHOD) or not target:
                return answer
            # Renamed repositories are answered so. A POST that would become a GET is not followed.
            if method != "GET" and answer.status not in _KEEPS_METHOD:
                return answer
            url = _same_host(url, target)
        raise OSError("it redirects in circles")

    def _once(self, method: str, url: str, data: bytes | None, deadline: float) -> Answer:
        request = urllib.request.Request(url, data, self._headers, method=method)  # noqa: S310 — checked
        if data is not None:
            request.add_header("Content-Type", "application/json")
        opener = urllib.request.build_opener(_AnyStatus)
        with opener.open(request, timeout=self._seconds) as response:
            headers = {name.lower(): value for name, value in response.headers.items()}
            return Answer(response.status, headers, _read(response, deadline))


def _read(response: HTTPResponse, deadline: float) -> bytes:
    body = b""
    while piece := response.read1(65_536):
        body += piece
        if len(body) > _MAX_BYTES:
            raise OSError(f"its answer is longer than {_MAX_BYTES} bytes")
        if time.monotonic() > deadline:
            raise TimeoutError
    return body


def _same_host(url: str, target: str) -> str:
    there = urljoin(url, target)
    if urlsplit(there)[:2] != urlsplit(url)[:2]:
        raise OSError(
            f"it sends us on to {plain(urlsplit(there).netloc, 100)!r}, where nothing was sent"
        )
    return there


def _reason(error: Exception) -> str:
    inner = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(inner, TimeoutError):
        return "it did not answer in time"
    return plain(getattr(inner, "strerror", None) or str(inner), 200) or type(inner).__name__


def _checked(base_url: str) -> str:
    try:
        parts = urlsplit(base_url)
        host = parts.hostname or ""
    except ValueError:
        host = ""
    if not host or parts.username or parts.query or parts.fragment:
        raise BadInput(
            "the address of the GitHub API must be like https://github.example.org/api/v3"
        )
    if parts.scheme != "https" and not (parts.scheme == "http" and _is_this_machine(host)):
        raise BadInput(f"the GitHub API at {host!r} must be asked by https: a token is sent to it")
    return base_url


def _is_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def _in_thread(work: Callable[[], _Result]) -> _Result:
    """Run it in a thread that nobody has to wait for: an answer may drip in for hours."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_Result] = loop.create_future()

    def settle(set_it: Callable[[Any], None], value: object) -> None:
        if not done.done():
            set_it(value)

    def run() -> None:
        try:
            outcome: tuple[Callable[[Any], None], object] = (done.set_result, work())
        except Exception as error:
            outcome = (done.set_exception, error)
        with contextlib.suppress(RuntimeError):  # the loop may be gone by now
            loop.call_soon_threadsafe(settle, *outcome)

    threading.Thread(target=run, name="podium-forge", daemon=True).start()
    return await done
