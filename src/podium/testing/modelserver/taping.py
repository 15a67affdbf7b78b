"""Recording a real provider's answers, and playing them back."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path

from podium.domain.errors import BadInput
from podium.testing.modelserver.answer import json_bytes
from podium.testing.modelserver.ask import table, word
from podium.testing.modelserver.cassette import (
    CassetteReader,
    CassetteWriter,
    Recorded,
    without_secrets,
)
from podium.testing.modelserver.digest import digest_of
from podium.testing.modelserver.http import Request, Response
from podium.testing.modelserver.listening import Gone
from podium.testing.modelserver.playing import JSON, send_failure
from podium.testing.modelserver.requests import SeenRequest, public_target, secrets_of
from podium.testing.modelserver.routes import route
from podium.testing.modelserver.upstream import Upstream, UpstreamAnswer, UpstreamBroke

ANSWER_LIMIT_BYTES = 64 * 1024 * 1024
UPSTREAM_NAMES = ("gemini", "openai", "anthropic")

Chunks = list[tuple[float, bytes]]

_KEPT_HEADER = re.compile(r"content-type|retry-after|retry-after-ms|(x|anthropic)-ratelimit-.*")
_FAMILY = {
    "gemini": "gemini",
    "responses": "openai",
    "chat": "openai",
    "anthropic": "anthropic",
    "": "",
}


class Recorder:
    """Hands each request to the provider and the answer back, and keeps whole answers on a cassette."""

    def __init__(self, upstream: str | Mapping[str, str], cassette: Path) -> None:
        """`upstream` is one URL for all, or a URL for each of gemini, openai, anthropic."""
        given = {"": upstream} if isinstance(upstream, str) else upstream
        unknown = sorted(set(given) - {"", *UPSTREAM_NAMES})
        if unknown or not given:
            named = f"no provider {unknown[0]!r}" if unknown else "no provider is named"
            raise BadInput(f"{named}; providers: {', '.join(UPSTREAM_NAMES)}")
        self._upstreams = {name: Upstream.at(url) for name, url in given.items()}
        self._writer = CassetteWriter(cassette)

    async def answer(
        self, request: Request, response: Response, gone: Gone, seen: SeenRequest
    ) -> None:
        _describe(request, seen)
        family = _FAMILY[seen.protocol]
        upstream = self._upstreams.get(family) or self._upstreams.get("")
        if upstream is None:
            await _send_error(response, 502, f"no upstream is given for {request.path}")
            return
        try:
            async with upstream.asked(request) as answer:
                chunks = await _hand_on(response, answer)
        except UpstreamBroke as broke:
            if response.status:
                response.drop()
            else:
                await _send_error(response, 502, str(broke))
            return
        seen.rule = self._keep(request, seen, answer, chunks)
        await response.finish()

    def _keep(
        self,
        request: Request,
        seen: SeenRequest,
        answer: UpstreamAnswer,
        chunks: Chunks | None,
    ) -> str:
        """Put the answer on the cassette, and say how that went: the client has it in any case."""
        if chunks is None:
            return f"not recorded: longer than {ANSWER_LIMIT_BYTES} bytes"
        headers = {
            name: text for name, text in answer.headers.items() if _KEPT_HEADER.fullmatch(name)
        }
        recorded = Recorded(
            digest=digest_of(request),
            method=request.method,
            path=public_target(request.target),
            model=seen.model,
            status=answer.status,
            headers=headers,
            chunks=without_secrets(chunks, secrets_of(request)),
        )
        try:
            self._writer.add(recorded)
        except OSError as error:
            return f"not recorded: {error.strerror}"
        return "recorded"


async def _hand_on(response: Response, answer: UpstreamAnswer) -> Chunks | None:
    """Give the answer to the client as it comes. None: it is too long to be kept."""
    loop = asyncio.get_running_loop()
    began, size = loop.time(), 0
    chunks: Chunks = []
    handed = {name: text for name, text in answer.headers.items() if name != "set-cookie"}
    await response.start(answer.status, handed)
    async for piece in answer.pieces:
        await response.send(piece)
        size += len(piece)
        if size <= ANSWER_LIMIT_BYTES:
            chunks.append((loop.time() - began, piece))
        else:
            chunks.clear()
    return chunks if size <= ANSWER_LIMIT_BYTES else None


class Player:
    """Answers from a cassette."""

    def __init__(self, cassette: Path, *, paced: bool = False) -> None:
        """`paced`: every piece comes as late as it did when it was recorded."""
        self._cassette = cassette
        self._reader = CassetteReader(cassette)
        self._paced = paced

    async def answer(
        self, request: Request, response: Response, gone: Gone, seen: SeenRequest
    ) -> None:
        _describe(request, seen)
        digest = digest_of(request)
        recorded = self._reader.next(digest)
        if recorded is None:
            await self._send_missing(request, response, seen, digest)
            return
        seen.rule = "replayed"
        await response.start(recorded.status, recorded.headers)
        loop = asyncio.get_running_loop()
        began = loop.time()
        for at, piece in recorded.chunks:
            if self._paced:
                await asyncio.sleep(began + at - loop.time())
            await response.send(piece)
        await response.finish()

    async def _send_missing(
        self, request: Request, response: Response, seen: SeenRequest, digest: str
    ) -> None:
        words = (
            f"the cassette {str(self._cassette)!r} has no answer for {request.method} {seen.path} "
            f"(model {seen.model!r}, {digest[:19]}…, prompt {seen.prompt[:80]!r}); record it with "
            f"`podium modelserver --record {self._cassette} --upstream URL`"
        )
        found = route(request)
        if found is not None:
            await send_failure(response, found.dialect.failure(404, words))
        else:
            await _send_error(response, 404, words)


def _describe(request: Request, seen: SeenRequest) -> None:
    """Say of the request what its protocol tells."""
    found = route(request)
    if found is None:
        return
    body = table(seen.body)
    ask = found.dialect.ask(body, size=seen.size)
    seen.protocol, seen.model = found.dialect.name, ask.model or word(body.get("model"))
    if found.purpose == "answer":
        seen.describe(ask)


async def _send_error(response: Response, status: int, words: str) -> None:
    error = {"code": status, "type": "model_server", "message": words}
    await response.whole(status, json_bytes({"type": "error", "error": error}), JSON)
