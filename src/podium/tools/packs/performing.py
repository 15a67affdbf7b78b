"""A pack's tools for the toolbox: performed, held against what they promised, and proved."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from podium.core.decisions import CallOutcome, Usage
from podium.core.errors import NotPossibleNow, OutcomeUnknown, ToolBroke
from podium.core.json_schema import validator_for
from podium.core.model import Json
from podium.core.packs import Pack, PackTool, floor_tier
from podium.platform import make_private_folder
from podium.platform.completion import in_thread
from podium.tools.packs.code import PackCode
from podium.tools.packs.files import PackFiles
from podium.tools.packs.handlers import (
    AnyHandler,
    HttpHandler,
    McpHandler,
    ServiceHandler,
    handler_of,
    python_handler,
)
from podium.tools.packs.hiding import PackSecrets
from podium.tools.packs.http import call_http
from podium.tools.packs.mcp import call_mcp
from podium.tools.packs.proving import proofs, unproved
from podium.tools.packs.scope import PackFunction, PackScope, RowReader, settings_of
from podium.tools.registry import Tool
from podium.tools.scope import Handler, ToolScope

_OWN_SHARE = 0.95
"""Of a call's seconds."""


def pack_tools(
    pack: Pack,
    *,
    settings: Mapping[str, str],
    state: Path,
    reader: RowReader | None = None,
    services: Mapping[str, Handler] | None = None,
) -> list[Tool]:
    """The pack's tools. `settings` is the environment, of which declared names are handed on.

    `state` is the folder for the pack's own files; it is made, private, when a tool first acts.
    Rows for proofs are read by `reader`, or else by the one that the registry names. None of the
    pack's code is imported before one of its tools is performed. `services` are Podium's own, by
    name; raises `NotPossibleNow` for a pack that names one which is not among them.
    """
    declared = settings_of(pack, settings)
    surroundings = _PackEnvironment(
        pack,
        PackCode(pack),
        declared,
        PackSecrets.of(pack, declared),
        state,
        reader,
        services or {},
    )
    return [
        Tool(
            tool.spec(tier=max(tool.tier, floor_tier(pack.registry, tool.name)[0])),
            PackHandler(tool, surroundings.offered(tool), surroundings),
        )
        for tool in pack.registry.tools
    ]


@dataclass(frozen=True)
class _PackEnvironment:
    """Values that all tools of a pack share."""

    pack: Pack
    code: PackCode
    settings: Mapping[str, str] = field(repr=False)
    hiding: PackSecrets
    state: Path
    reader: RowReader | None
    services: Mapping[str, Handler]

    def offered(self, tool: PackTool) -> AnyHandler:
        handler = handler_of(tool.handler)
        if isinstance(handler, ServiceHandler) and handler.service not in self.services:
            raise NotPossibleNow(
                f"pack {self.pack.name!r} works with `podium ask` alone; name another pack here"
            )
        return handler

    def scope(self, tool: PackTool, scope: ToolScope) -> PackScope:
        make_private_folder(self.state)
        return PackScope(
            key=scope.key,
            tool=tool.name,
            now=scope.clock.now(),
            settings=self.settings,
            folder=Path(self.pack.folder),
            state=self.state,
            # Before the toolbox's own limit, which knows nothing of doubt.
            timeout_seconds=scope.timeout_seconds * _OWN_SHARE,
            planned_at=scope.call.plan.planned_at if scope.call.plan else None,
        )

    async def row_reader(self) -> RowReader:
        if self.reader is not None:
            return self.reader
        handler = python_handler(self.pack.registry.reader)
        return cast(RowReader, await self.code.ready(handler))


@dataclass(frozen=True)
class PackHandler:
    """Performs one tool of a pack. No receipt, no success; not proved, no success."""

    tool: PackTool
    handler: AnyHandler
    surroundings: _PackEnvironment

    async def __call__(self, arguments: dict[str, Json], scope: ToolScope) -> CallOutcome:
        own = self.surroundings.scope(self.tool, scope)
        result = await self._result_of(arguments, scope, own)
        failure = ""
        if isinstance(result, CallOutcome):
            result, failure = result.result, result.error
        if not isinstance(result, dict):
            kind = type(result).__name__
            raise ToolBroke(f"{self.tool.name} gave {kind} and no result; no receipt, no success")
        problem = self._broken_promise(result) or failure
        if problem:
            return CallOutcome(ok=False, result=result, error=problem)
        return await self._proved(arguments, result, scope, own)

    async def _result_of(
        self, arguments: dict[str, Json], scope: ToolScope, own: PackScope
    ) -> Json | CallOutcome:
        """Run the handler and remove secrets from its result and errors."""
        hiding, limit = self.surroundings.hiding, asyncio.timeout(own.timeout_seconds)
        try:
            async with limit:
                return hiding.json(await self._act(arguments, scope, own))
        except TimeoutError as error:
            if not limit.expired():
                raise hiding.error(self.tool.name, error) from None
            problem = f"{self.tool.name} took more than {own.timeout_seconds:g} s"
            raise OutcomeUnknown(f"{problem}; whether it acted is not known") from None
        except Exception as error:
            raise hiding.error(self.tool.name, error) from None

    async def _act(
        self, arguments: dict[str, Json], scope: ToolScope, own: PackScope
    ) -> dict[str, Json] | CallOutcome:
        shared = self.surroundings
        if isinstance(self.handler, ServiceHandler):
            return await shared.services[self.handler.service](arguments, scope)
        if isinstance(self.handler, HttpHandler):
            return await call_http(self.handler, arguments, scope, shared.settings)
        if isinstance(self.handler, McpHandler):
            # Its program may lie in the pack's folder, and is started as it was loaded or not at all.
            await in_thread(PackFiles(own.folder, shared.pack.digest).manifest)
            return await call_mcp(self.handler, arguments, scope, shared.settings, own.folder)
        act = cast(PackFunction, await shared.code.ready(self.handler))
        return await act(arguments, own)

    def _broken_promise(self, result: dict[str, Json]) -> str:
        missing = [name for name in self.tool.receipt_fields if name not in result]
        if missing:
            named = ", ".join(missing)
            return f"{self.tool.name} did not say {named}; no receipt, no success: look what it did"
        reverse = self.surroundings.pack.tool(self.tool.undo) if self.tool.undo else None
        if reverse is None or ("undo" in result and result["undo"] is None):
            return ""
        problem = _misfit(reverse, result.get("undo"))
        return f"done, but {self.tool.name} gave no usable undo: {problem}" if problem else ""

    async def _proved(
        self, arguments: dict[str, Json], result: dict[str, Json], scope: ToolScope, own: PackScope
    ) -> CallOutcome:
        reader = await self.surroundings.row_reader() if self.tool.verify else None
        results = await proofs(self.tool.verify, arguments, result, reader, own) if reader else []
        result = {**result, "verification": results}
        if scope.call.plan is not None and scope.call.plan.undoes:
            result["undoes"] = scope.call.plan.undoes
        problem = unproved(results)
        if problem:
            return CallOutcome(ok=False, result=result, error=f"done, but not proved: {problem}")
        # Podium's own services report what others spent and spend nothing themselves.
        usage = Usage() if isinstance(self.handler, ServiceHandler) else _cost(result)
        return CallOutcome(ok=True, result=result, usage=usage)


def _cost(result: dict[str, Json]) -> Usage:
    """Read the cost that the handler reports under `usd`."""
    usd = result.get("usd")
    if isinstance(usd, bool) or not isinstance(usd, int | float) or not 0 <= usd < math.inf:
        return Usage()
    return Usage(usd=float(usd))


def _misfit(reverse: PackTool, arguments: Json) -> str:
    """Say why these cannot be the arguments of the undo tool; empty when they can."""
    error = next(iter(validator_for(reverse.input_schema).iter_errors(arguments)), None)
    return error.message[:200] if error is not None else ""
