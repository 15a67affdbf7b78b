"""One turn with `codex app-server`: its opening, what is said and answered, and what was used."""

from __future__ import annotations

import asyncio
import re
from typing import Any, Literal, NamedTuple

from podium.agents.headless.codex.errors import LOGIN_HINT, is_worth_a_retry
from podium.agents.headless.codex.home import trust_hook
from podium.agents.headless.codex.tools import WITHOUT_SANDBOX, Judged, escalated
from podium.agents.headless.own_tools import OwnTools
from podium.agents.json_rpc import METHOD_NOT_FOUND, LineClosed, Params, RpcError, RpcPeer
from podium.agents.outcome import cost_of, plain_line
from podium.core.decisions import Usage
from podium.core.errors import AgentLost, AgentNotLoggedIn, BudgetSpent, NeedsHuman
from podium.core.model import Json
from podium.core.turns import Turn, TurnLimits

MAX_TOKENS = 10**15
"""Larger numbers are not taken for a token count."""


class Meter:
    """Counts the exchanges with the model, those of agents inside the agent too."""

    def __init__(self, agent: str, limits: TurnLimits) -> None:
        self._agent = agent
        self._limits = limits
        self._input = 0
        self._cached = 0
        self._output = 0
        self._turns = 0
        self.model = ""
        self.asked = False
        """True once the question was sent: one exchange then counts, even when codex reports none."""

    @property
    def knows_price(self) -> bool:
        return self._price() is not None

    def count(self, tokens: Any) -> None:
        """Take in one exchange, as codex tells it."""
        last = tokens.get("last") if isinstance(tokens, dict) else None
        figures = last if isinstance(last, dict) else {}
        self._input += _number(figures, "inputTokens")
        self._cached += _number(figures, "cachedInputTokens")
        self._output += _number(figures, "outputTokens")
        self._turns += 1

    def must_have_some_left(self) -> None:
        """For when the agent goes on. Raises `BudgetSpent` when a limit of the turn is reached."""
        limits = self._limits
        self._check("turns", self._turns, limits.turns)
        self._check("tokens", self._input + self._output, limits.tokens)
        if limits.usd is not None:
            self._check("usd", self._price() or 0.0, limits.usd)

    def usage(self, seconds: float) -> Usage:
        """All that is known to be used so far."""
        price = self._price()
        has_price = self._turns > 0 and price is not None
        return Usage(
            input_tokens=self._input,
            output_tokens=self._output,
            usd=price or 0.0,
            turns=max(self._turns, int(self.asked)),
            seconds=seconds,
            complete=has_price or not self.asked,
        )

    def _price(self) -> float | None:
        if not self.model:
            return None
        return cost_of(
            self.model,
            input_tokens=self._input,
            output_tokens=self._output,
            cached_tokens=self._cached,
        )

    def _check(self, measure: str, used: float, limit: float | None) -> None:
        if limit is None or used < limit:
            return
        raise BudgetSpent(
            f"agent {self._agent!r} was stopped: it has used {used:g} of {limit:g} {measure}",
            scope="step",
            measure=measure,
            used=used,
            limit=limit,
        )


def _number(figures: dict[str, Any], name: str) -> int:
    value = figures.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        return 0
    return value if 0 < value < MAX_TOKENS else 0


MAX_OUTPUT_CHARACTERS = 20_000
MAX_WARNINGS = 10

_GATED = (
    "commandExecution",
    "fileChange",
    "mcpToolCall",
    "dynamicToolCall",
    "imageView",
    "collabAgentToolCall",
)
_METHOD = re.compile(r'\s*\{\s*"method"\s*:\s*"([^"]{1,200})"')
_PROGRESS: dict[str, Literal["text", "thinking"]] = {
    "item/agentMessage/delta": "text",
    "item/reasoning/summaryTextDelta": "thinking",
    "item/reasoning/textDelta": "thinking",
}


class CodexSession:
    """Hears codex for one turn, and holds what it does against what was judged.

    A hook that broke, or an act that was never judged, raises `NeedsHuman` out of the reader: the
    process is ended at once, but what it did in between nobody can take back.
    """

    def __init__(
        self, agent: str, door: OwnTools, judged: Judged, meter: Meter, hooks: str
    ) -> None:
        self._agent = agent
        self._door = door
        self._judged = judged
        self._meter = meter
        self.hooks = hooks
        self._thread = ""
        self._turns: set[str] = set()
        self._cleared: set[str] = set()
        self._changes: dict[str, list[str]] = {}
        self._ended: asyncio.Future[Params] = asyncio.get_running_loop().create_future()
        self.messages: list[str] = []
        self.did_or_thought = False
        """True if it did or thought anything since it was asked, beside talking."""
        self.untold: list[str] = []
        self.warnings: list[str] = []

    async def ask(self, peer: RpcPeer, thread: str, start: Params) -> Params:
        """Put the question in this thread; gives the finished turn as codex tells it."""
        self._thread = thread
        self._meter.asked = True
        await peer.call("turn/start", {"threadId": thread, **start})
        over: asyncio.Future[None] = asyncio.ensure_future(peer.over())
        either: set[asyncio.Future[Any]] = {over, self._ended}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if self._ended.done():
                return self._ended.result()
            over.result()
            raise LineClosed(f"agent {self._agent!r} exited in the middle of its turn")
        finally:
            over.cancel()

    async def hear(self, method: str, params: Params) -> None:
        item = params.get("item")
        if method in _PROGRESS:
            self._progress(method, params)
        elif method == "item/started" and isinstance(item, dict):
            self._began(item)
        elif method == "item/completed" and isinstance(item, dict):
            await self._finished(params, item)
        elif method in ("hook/started", "hook/completed"):
            await self._hooked(method, params.get("run"))
        elif method == "item/commandExecution/terminalInteraction" and params.get("stdin"):
            self._breach("input was sent to a running command")
        elif method == "turn/started":
            self._turns.add(_turn_id(params))
        elif method == "thread/tokenUsage/updated" and str(params.get("turnId")) in self._turns:
            # Of a continued conversation the last exchange is told once more.
            self._meter.count(params.get("tokenUsage"))
        elif method == "turn/completed" and params.get("threadId") == self._thread:
            self._complete(params.get("turn"))
        elif method in ("error", "warning"):
            self._complain(method, params)

    async def answer(self, method: str, params: Params) -> Json:
        """Answer codex's requests to its host. There is no person to ask, but a door."""
        if method == "item/commandExecution/requestApproval":
            request = {"command": params.get("command"), "cwd": params.get("cwd")}
            return {"decision": await self._leave_sandbox(params, request)}
        if method == "item/fileChange/requestApproval":
            paths = self._changes.get(str(params.get("itemId")), [])
            return {"decision": await self._leave_sandbox(params, {"paths": paths})}
        if method == "item/permissions/requestApproval":
            return {"permissions": {}}
        if method == "mcpServer/elicitation/request":
            return {"action": "decline"}
        if method == "item/tool/requestUserInput":
            return {"answers": {}}
        raise RpcError(METHOD_NOT_FOUND, f"Podium does not support {method!r}")

    async def _leave_sandbox(self, params: Params, request: Params) -> str:
        """May this be done outside of codex's own sandbox? The command itself was judged before."""
        use = str(params.get("itemId"))
        answer = await self._door.request(WITHOUT_SANDBOX, request, ref=escalated(use))
        if not answer.allowed:
            # Codex tells its model no more than that the user said no.
            self.untold.append(f"{plain_line(str(request), 200)} outside the sandbox: {answer.say}")
        return "accept" if answer.allowed else "decline"

    def _progress(self, method: str, params: Params) -> None:
        if params.get("threadId") == self._thread:
            self._door.report_progress(_PROGRESS[method], str(params.get("delta") or ""))

    def _began(self, item: Params) -> None:
        kind = item.get("type")
        if kind == "userMessage":
            return
        self._goes_on()
        if kind not in _GATED:
            return
        use = str(item.get("id"))
        self._changes[use] = _paths(item)
        if use not in self._cleared:
            self._breach(f"{_item_summary(item)} started before Podium had allowed it")
        if difference := self._judged.difference(item):
            self._breach(
                f"{_item_summary(item)} differs from the call that was checked: {difference}"
            )
        self._door.report_progress("tool", _item_summary(item))

    async def _finished(self, params: Params, item: Params) -> None:
        kind = item.get("type")
        if kind == "agentMessage" and params.get("threadId") == self._thread:
            self.messages.append(str(item.get("text") or ""))
        elif kind not in ("agentMessage", "userMessage"):
            self.did_or_thought = True
        if kind == "webSearch":
            await self._searched(item)
        elif kind in _GATED and not _is_unknown(item):
            error = _error(item)
            for ref in self._judged.refs(str(item.get("id"))):
                await self._door.settle(ref, ok=not error, result=_result(item), error=error)

    async def _searched(self, item: Params) -> None:
        """The model's provider searches by itself: the gate hears of it when it has happened."""
        query, ref = str(item.get("query") or ""), str(item.get("id"))
        answer = await self._door.request("web_search", {"query": query}, ref=ref)
        if not answer.allowed:
            self._breach(f"it searched the web for {query!r}: {answer.say}")
        await self._door.settle(ref, ok=True, result={"done": True})

    async def _hooked(self, method: str, run: Any) -> None:
        if not isinstance(run, dict) or run.get("eventName") != "preToolUse":
            return
        self._goes_on()
        if run.get("sourcePath") != self.hooks:
            return
        use = str(run.get("id")).removeprefix(
            f"pre-tool-use:{run.get('displayOrder')}:{self.hooks}:"
        )
        if method == "hook/started":
            self._door.expect(use)
            return
        self._door.expect_no_more(use)
        if run.get("status") == "completed":
            self._cleared.add(use)
        elif run.get("status") == "blocked":
            for ref in self._judged.refs(use):
                await self._door.settle(ref, ok=False, error="another part of the call was refused")
        else:
            self._breach(f"Podium's hook failed: {_entries(run)}")

    def _goes_on(self) -> None:
        """A turn that has its answer may have used up its limits; one that goes on may not."""
        if not self._ended.done():
            self._meter.must_have_some_left()

    def _breach(self, what: str) -> None:
        text = plain_line(what)
        self._door.report_progress("note", text)
        raise NeedsHuman(
            f"agent {self._agent!r} was stopped: {text}; check its workspace before you continue"
        )

    def _complete(self, turn: Any) -> None:
        if not self._ended.done():
            self._ended.set_result(turn if isinstance(turn, dict) else {})

    def _complain(self, method: str, params: Params) -> None:
        """Errors of a turn come again with its end, but for those that codex tries to get over."""
        if method == "warning" and len(self.warnings) < MAX_WARNINGS:
            self.warnings.append(plain_line(str(params.get("message") or "")))
        error = params.get("error")
        if not params.get("willRetry") or not isinstance(error, dict):
            return
        reason = {**error, "message": error.get("additionalDetails") or error.get("message")}
        self._door.report_progress("retry", plain_line(str(reason["message"])))
        if not is_worth_a_retry(reason):
            self._complete({"status": "failed", "error": reason})


def is_piece(line: str) -> bool:
    """Return whether a line holds a part of what comes whole later. A secret may be spread over such parts."""
    match = _METHOD.match(line)
    return match is not None and match[1].lower().endswith("delta")


def _turn_id(params: Params) -> str:
    turn = params.get("turn")
    return str(turn.get("id")) if isinstance(turn, dict) else ""


def _paths(item: Params) -> list[str]:
    changes = item.get("changes")
    entries = changes if isinstance(changes, list) else []
    return [str(change.get("path")) for change in entries if isinstance(change, dict)]


def _item_summary(item: Params) -> str:
    what = item.get("command") or item.get("tool") or item.get("path") or ", ".join(_paths(item))
    return f"{item.get('type')} {plain_line(str(what), 200)!r}"


def _entries(run: Params) -> str:
    value = run.get("entries")
    entries = value if isinstance(value, list) else []
    return " ".join(str(entry.get("text")) for entry in entries if isinstance(entry, dict))


def _is_unknown(item: Params) -> bool:
    """Return whether nobody reports how a command ended: then it stays open, and nobody calls it done."""
    completed = item.get("status") == "completed"
    return item.get("type") == "commandExecution" and completed and item.get("exitCode") is None


def _error(item: Params) -> str:
    status = item.get("status")
    if status in (None, "completed"):
        return ""
    code = item.get("exitCode")
    return f"exit code {code}" if code else str(status)


def _result(item: Params) -> dict[str, Json]:
    if item.get("type") != "commandExecution":
        return {"done": item.get("status") in (None, "completed")}
    output = str(item.get("aggregatedOutput") or "")
    return {"exit_code": item.get("exitCode"), "stdout": output[-MAX_OUTPUT_CHARACTERS:]}


class Conversation(NamedTuple):
    """A conversation as codex has opened it."""

    name: str
    model: str


async def open_conversation(peer: RpcPeer, turn: Turn, hooks: str, agent: str) -> Conversation:
    """Begin or go on, once the hook is trusted and somebody is logged in.

    Raises `NotPossibleNow`, `AgentNotLoggedIn`, and `AgentLost` for answers that make no sense.
    """
    client = {"name": "podium", "title": "Podium", "version": "1"}
    await peer.call("initialize", {"clientInfo": client})
    await peer.notify("initialized")
    await trust_hook(peer, turn.workspace, hooks, agent)
    await _must_be_logged_in(peer, agent)
    # Not the sandbox: codex trusts a project by itself when a client names one here.
    location: Params = {"cwd": turn.workspace}
    if turn.session is None:
        opened = _fields(await peer.call("thread/start", location))
    else:
        resumed = {"threadId": turn.session, "excludeTurns": True, **location}
        opened = _fields(await peer.call("thread/resume", resumed))
    name = _fields(opened.get("thread")).get("id")
    if not isinstance(name, str) or not name:
        raise AgentLost(f"agent {agent!r} opened a conversation without an id")
    return Conversation(name, str(opened.get("model") or ""))


async def _must_be_logged_in(peer: RpcPeer, agent: str) -> None:
    account = _fields(await peer.call("account/read", {"refreshToken": False}))
    if account.get("requiresOpenaiAuth") and account.get("account") is None:
        raise AgentNotLoggedIn(f"agent {agent!r} is not logged in; {LOGIN_HINT}")


def _fields(answer: Json) -> dict[str, Any]:
    return answer if isinstance(answer, dict) else {}
