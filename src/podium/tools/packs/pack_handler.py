"""A pack's tools for the toolbox: performed, checked against their promises, proved, and freed of the pack's secrets.

The toolbox removes secrets that it knows by the names of variables; here a registry says itself which of its
settings are secret, whatever they are called.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote, quote_plus

from podium.core.decisions import CallOutcome, Usage
from podium.core.encoded_secrets import EncodedSecrets
from podium.core.errors import NotPossibleNow, OutcomeUnknown, PodiumError, ToolBroke
from podium.core.json_schema import validator_for
from podium.core.model import Json
from podium.core.packs import Pack, PackTool, RowCheck, floor_tier
from podium.platform import make_private_folder
from podium.platform.completion import in_thread
from podium.tools.packs.files import PackFiles
from podium.tools.packs.handlers import (
    AnyHandler,
    HttpHandler,
    McpHandler,
    PackFunction,
    PackScope,
    RecordsHandler,
    RowReader,
    ServiceHandler,
    handler_of,
    python_handler,
    settings_of,
)
from podium.tools.packs.pack_code import PackCode
from podium.tools.packs.records import perform_records, read_record
from podium.tools.packs.remote_calls import call_http, call_mcp
from podium.tools.registry import Tool
from podium.tools.scope import Handler, ToolScope

_SHORTEST = 6
"""Shorter values would be found all over ordinary text."""
_CUT = "…"


@dataclass(frozen=True)
class PackSecrets:
    """The secrets of one pack, by name, and every form in which they are looked for."""

    secrets: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, pack: Pack, settings: Mapping[str, str]) -> PackSecrets:
        secret = (setting.name for setting in pack.registry.settings if setting.secret)
        values = {name: settings[name] for name in secret if len(settings[name]) >= _SHORTEST}
        # The longest first: one may be a part of another.
        return cls(dict(sorted(values.items(), key=lambda pair: -len(pair[1]))))

    def text(self, text: str) -> str:
        for name, form in self._forms:
            text = text.replace(form, f"[redacted:{name}]")
        return self._encoded.hide(text)

    @cached_property
    def _forms(self) -> list[tuple[str, str]]:
        forms = [(name, form) for name, value in self.secrets.items() for form in _written(value)]
        return sorted(forms, key=lambda pair: -len(pair[1]))

    @cached_property
    def _encoded(self) -> EncodedSecrets:
        return EncodedSecrets(self.secrets.items())

    def _without_beginnings(self, message: str) -> str:
        """Words quote only so much of what was said, and the cut may go through a secret."""
        *quoted, last = message.split(_CUT)
        return _CUT.join([*(self._without_beginning(part) for part in quoted), last])

    def _without_beginning(self, part: str) -> str:
        for name, form in self._forms:
            for size in range(min(len(form), len(part)), _SHORTEST - 1, -1):
                if part.endswith(form[:size]):
                    return f"{part[:-size]}[redacted:{name}]"
        return part

    def json(self, value: Json) -> Json:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.json(key): self.json(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.json(item) for item in value]
        return value

    def error(self, tool: str, error: Exception) -> Exception:
        """The error itself, or one without the secret that its words hold."""
        if isinstance(error, PodiumError) and not isinstance(error, ToolBroke):
            return error
        original = str(error)
        message = self._without_beginnings(self.text(original))
        if message == original:
            return error
        if isinstance(error, OutcomeUnknown):
            return OutcomeUnknown(message)
        kind = "" if isinstance(error, ToolBroke) else f"{tool!r} broke: {type(error).__name__}: "
        return ToolBroke(f"{kind}{message}")


def _written(secret: str) -> set[str]:
    """The value as it stands in plain text, in addresses and forms, in JSON, in JSON inside JSON, and in HTML."""
    quoted = {quote(secret, safe=""), quote(secret), quote_plus(secret)}
    quoted |= {re.sub(r"%..", lambda part: part[0].lower(), form) for form in quoted}
    escaped = {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    escaped |= {form.replace("/", "\\/") for form in escaped}
    escaped |= {json.dumps(form)[1:-1] for form in escaped}
    return {secret, *quoted, *escaped, escape(secret), repr(secret)[1:-1]}


async def proofs(
    checks: Sequence[RowCheck],
    arguments: Mapping[str, Json],
    result: Mapping[str, Json],
    reader: RowReader,
    scope: PackScope,
) -> list[dict[str, Json]]:
    """Run the checks and return their results for the receipt: table, where, found, ok; `problem` when not ok."""
    return [await _proof(check, arguments, result, reader, scope) for check in checks]


def unproved(results: Sequence[Mapping[str, Json]]) -> str:
    """Join the problems of failed checks; empty when all passed."""
    return "; ".join(str(proof["problem"]) for proof in results if not proof["ok"])


async def _proof(
    check: RowCheck,
    arguments: Mapping[str, Json],
    result: Mapping[str, Json],
    reader: RowReader,
    scope: PackScope,
) -> dict[str, Json]:
    where = {name: _meant(value, arguments, result) for name, value in check.where.items()}
    proof: dict[str, Json] = {"table": check.table, "where": where, "found": None, "ok": False}
    columns = tuple(dict.fromkeys((*check.columns, *check.expect)))
    try:
        row = await reader(check.table, where, columns, scope)
    except PodiumError as error:
        return proof | {"problem": f"{check.table} could not be read: {error}"}
    except Exception as error:
        return proof | {"problem": f"{check.table} could not be read: {type(error).__name__}"}
    proof["found"] = None if row is None else {name: _plain(value) for name, value in row.items()}
    problem = _problem(check, proof["found"], arguments, result)
    return proof | ({"problem": problem} if problem else {"ok": True})


def _problem(
    check: RowCheck,
    row: Mapping[str, Json] | None,
    arguments: Mapping[str, Json],
    result: Mapping[str, Json],
) -> str:
    if check.absent:
        return f"{check.table} still has the row" if row is not None else ""
    if row is None:
        return f"{check.table} does not have the row"
    for column, value in check.expect.items():
        expected = _plain(_meant(value, arguments, result))
        if column not in row or row[column] != expected:
            return f"{check.table}.{column} is {row.get(column)!r}, not {expected!r}"
    return ""


def _meant(value: Json, arguments: Mapping[str, Json], result: Mapping[str, Json]) -> Json:
    """Resolve a value of a check that refers to an argument or a result."""
    for prefix, source in (("$arg.", arguments), ("$result.", result)):
        if isinstance(value, str) and value.startswith(prefix):
            current: Json = source
            for part in value.removeprefix(prefix).split("."):
                current = current.get(part) if isinstance(current, Mapping) else None
            return current
    return value


def _plain(value: Any) -> Json:
    """A database's value as JSON has it."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, datetime | date):
        return value.isoformat()
    return value


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
                f"pack {self.pack.name!r} can only be used with `podium ask`; name another pack"
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
        if not self.pack.registry.reader:
            return read_record
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
            raise ToolBroke(
                f"{self.tool.name} returned {kind} instead of a JSON object, so there is no receipt; check what the tool did"
            )
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
            problem = f"{self.tool.name} timed out after {own.timeout_seconds:g} s"
            raise OutcomeUnknown(f"{problem}; it is unknown whether it acted") from None
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
        if isinstance(self.handler, RecordsHandler):
            return await perform_records(self.handler, self.tool, shared.pack, arguments, own)
        act = cast(PackFunction, await shared.code.ready(self.handler))
        return await act(arguments, own)

    def _broken_promise(self, result: dict[str, Json]) -> str:
        missing = [name for name in self.tool.receipt_fields if name not in result]
        if missing:
            named = ", ".join(missing)
            return f"the result of {self.tool.name} lacks {named}, so there is no receipt; check what the tool did"
        reverse = self.surroundings.pack.tool(self.tool.undo) if self.tool.undo else None
        if reverse is None or ("undo" in result and result["undo"] is None):
            return ""
        problem = _misfit(reverse, result.get("undo"))
        return f"done, but {self.tool.name} returned no usable undo: {problem}" if problem else ""

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
            return CallOutcome(ok=False, result=result, error=f"done, but not verified: {problem}")
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
