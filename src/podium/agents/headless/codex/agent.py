"""`CodexCliAgent`: OpenAI's codex, driven as `codex app-server`, with its tools before the gate.

The app server is used rather than `codex exec`: there the trust in our hook can be set and seen
in the very process that works, and it tells of every hook and every act, refused ones too.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from podium.agents.contract.json_objects import load_object
from podium.agents.deps import AgentDeps, AgentOptions
from podium.agents.headless.codex import home as codex_home
from podium.agents.headless.codex.errors import turn_error, without_answers
from podium.agents.headless.codex.home import refuse_foreign_git
from podium.agents.headless.codex.session import CodexSession, Meter, is_piece, open_conversation
from podium.agents.headless.codex.tools import (
    OWN_TOOLS,
    TOOLBOX,
    CodexTools,
    Judged,
    McpOnlySetup,
    mcp_only_models,
)
from podium.agents.headless.home import Home, private_home
from podium.agents.headless.own_tools import (
    NoOwnTools,
    OwnTools,
    in_empty_folder,
    may_end_silently,
    toolbox_server,
    with_door_outcome,
    without_own_tools,
)
from podium.agents.json_rpc import LineClosed, RpcError, talking
from podium.agents.kinds import ABOUT
from podium.agents.outcome import (
    accounted,
    lost,
    may_end_with,
    missing_tools,
    out_of_time,
    plain_line,
    unkept_limits,
)
from podium.agents.program import (
    Needs,
    confinement_for,
    confinement_warnings,
    received_line,
    sent_line,
    untried,
    version_of,
)
from podium.core.errors import (
    AgentLost,
    AgentRefused,
    AgentRejected,
    NeedsHuman,
    PodiumError,
    ToolMissing,
)
from podium.core.model import Json
from podium.core.processes import Confinement, ProcessExit, ProcessLimits, ProcessSpec
from podium.core.turns import Reply, Turn, unknown_names
from podium.ports import HookDoor, Process, Transcript

_LEFT_OUT = {
    "default",
    "title",
    "examples",
    "format",
    "minLength",
    "maxLength",
    "uniqueItems",
    "contentMediaType",
    "discriminator",
}
_UNSUPPORTED = {
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "patternProperties",
    "prefixItems",
    "contains",
}


class NotStrict(Exception):
    """The contract says something that structured outputs have no words for."""


def strict_schema(contract: type[BaseModel]) -> dict[str, Any] | None:
    """The schema to send; None when the contract cannot be said in it.

    What is left out of it, such as the length of a text, is checked when the reply is validated.
    """
    try:
        schema = _strict(contract.model_json_schema())
    except NotStrict:
        return None
    return schema if schema.get("type") == "object" else None


def _strict(schema: Any) -> dict[str, Any]:
    if not isinstance(schema, dict) or _UNSUPPORTED & schema.keys():
        raise NotStrict
    if "$ref" in schema:
        reference = {"$ref": schema["$ref"]}  # nothing may stand beside a reference
        return (
            {**reference, "$defs": _strict_values(schema["$defs"])}
            if "$defs" in schema
            else reference
        )
    strict = {key: value for key, value in schema.items() if key not in _LEFT_OUT}
    if "oneOf" in strict:
        strict["anyOf"] = strict.pop("oneOf")
    for key in ("$defs", "properties"):
        if key in strict:
            strict[key] = _strict_values(strict[key])
    if "anyOf" in strict:
        strict["anyOf"] = [_strict(choice) for choice in strict["anyOf"]]
    if strict.get("type") == "array":
        strict["items"] = _strict(strict.get("items"))
    if strict.get("type") == "object":
        _close(strict)
    if not {"type", "anyOf", "enum", "const"} & strict.keys():
        raise NotStrict
    return strict


def _strict_values(schemas: dict[str, Any]) -> dict[str, Any]:
    return {name: _strict(schema) for name, schema in schemas.items()}


def _close(schema: dict[str, Any]) -> None:
    """An object with these properties and no others; a map of anything cannot be said."""
    if schema.get("additionalProperties") or "properties" not in schema:
        raise NotStrict
    schema["required"] = list(schema["properties"])
    schema["additionalProperties"] = False


TRIED_VERSION = ABOUT["codex"].tried
INSTALL = "install it with `npm install --global @openai/codex`"
LAST_SECONDS = 5.0
"""Seconds codex may take to put its conversation away after a good turn."""
GRACE_SECONDS = 1.0
"""Seconds it may take to end in all other cases: asked to end, it waits for its turn."""

_sandbox_works: dict[tuple[str, ...], bool] = {}
"""The command that starts codex → whether its own sandbox works on this machine."""


class CodexCliAgent:
    """Asks codex, each turn in a process and on a private home of its own."""

    def __init__(self, options: AgentOptions, deps: AgentDeps) -> None:
        self._options = options
        self._deps = deps
        self._own = codex_home.codex_options(options)
        self._argv = options.command or ("codex",)

    @property
    def name(self) -> str:
        return self._options.name

    async def ask(self, turn: Turn) -> Reply:
        began = self._deps.clock.monotonic()
        meter = Meter(self.name, turn.limits)
        with accounted(self.name, lambda: meter.usage(self._deps.clock.monotonic() - began)):
            return await self._ask(turn, meter, began)

    async def _ask(self, turn: Turn, meter: Meter, began: float) -> Reply:
        deps = self._deps
        if self._own.hands:
            refuse_foreign_git(self.name, Path(turn.workspace))
        version = await self._version(turn)
        keep, logins = (codex_home.CONVERSATIONS,), (codex_home.login(deps),)
        with (
            private_home(deps, turn, self.name, keep=keep, logins=logins) as home,
            deps.transcripts.open(turn, self.name) as transcript,
        ):
            turn = home.turn
            sandbox, warnings = await self._sandbox(turn, home)
            judged = Judged(turn.workspace) if self._own.hands else CodexTools(turn.workspace)
            async with self._door(turn, judged) as door:
                hands: OwnTools = door if self._own.hands else NoOwnTools(door, TOOLBOX)
                seated = turn if self._own.hands else in_empty_folder(turn, home)
                mcp_only = (
                    None if self._own.hands else await self._mcp_only_setup(seated, home, door)
                )
                hooks = codex_home.lay_out(home, deps, self._options, seated, sandbox, mcp_only)
                talk = CodexSession(self.name, hands, judged, meter, str(hooks))
                env = codex_home.environment(home, self._options, door.hook_env)
                spawn = self._spawn(seated, env, await self._confinement(turn, home, door))
                session, done, ended = await self._talk(seated, spawn, talk, meter, transcript)
        text = self._answer(done, ended, talk, may_end_silently(door))
        payload, native = _payload(turn, text)
        seconds = deps.clock.monotonic() - began
        reply = Reply(
            text=text,
            payload=payload,
            found="native" if native else "none",
            usage=meter.usage(seconds),
            agent=self.name,
            model=meter.model,
            version=version,
            session=session,
            seconds=seconds,
            transcript=transcript.path,
            untold=tuple(talk.untold),
            warnings=(
                *untried(self.name, version, TRIED_VERSION),
                *warnings,
                *self._warnings(turn, meter, ended),
                *talk.warnings,
            ),
            waiting_approvals=door.waiting_approvals,
        )
        return home.signed(with_door_outcome(reply, turn, door))

    def _door(self, turn: Turn, judged: Judged) -> AbstractAsyncContextManager[HookDoor]:
        if self._own.hands:
            return self._deps.doors.open(turn, agent=self.name, translate=judged.translate)
        return self._deps.doors.open(without_own_tools(turn), agent=self.name)

    async def _mcp_only_setup(self, turn: Turn, home: Home, door: HookDoor) -> McpOnlySetup:
        deps, env = self._deps, self._plain_environment(home)
        server = toolbox_server(self.name, deps, door)
        models = await mcp_only_models(self.name, deps.launcher, self._argv, turn.workspace, env)
        return McpOnlySetup(server, models)

    async def _talk(
        self,
        turn: Turn,
        spawn: ProcessSpec,
        talk: CodexSession,
        meter: Meter,
        transcript: Transcript,
    ) -> tuple[str, dict[str, Any], ProcessExit]:
        """Hold the conversation of one turn; gives the session, the turn as codex tells it, and its end."""

        def keep(way: str, line: str) -> None:
            if way == "sent":
                transcript.write(sent_line(line))
            elif not is_piece(line):
                transcript.write(received_line(line))

        async with self._running(spawn) as process:
            try:
                async with talking(
                    process, talk.answer, talk.hear, version_field=False, keep=keep
                ) as peer:
                    opened = await open_conversation(peer, turn, talk.hooks, self.name)
                    thread, meter.model = opened
                    done = await talk.ask(peer, thread, _question(turn))
                    ended = await self._leave(process)
                    await peer.over()
            except NeedsHuman:
                await process.end(grace_seconds=0.0)
                raise
            except LineClosed:
                raise self._lost(await process.wait()) from None
            except RpcError as error:
                raise AgentRejected(
                    f"agent {self.name!r} rejected the turn: {plain_line(str(error))}"
                ) from None
        return thread, done, ended

    def _lost(self, ended: ProcessExit) -> PodiumError:
        if ended.timed_out:
            return out_of_time(self.name, ended)
        stderr = without_answers(ended.stderr)
        return lost(self.name, ended.model_copy(update={"stderr": stderr}))

    def _answer(
        self, done: dict[str, Any], ended: ProcessExit, talk: CodexSession, waiting: tuple[str, ...]
    ) -> str:
        """The last message of a turn that codex calls completed, if it came to a good end itself too."""
        if done.get("status") != "completed":
            raise turn_error(self.name, done.get("error"), self._deps.clock.now(), ended.stderr)
        if ended.timed_out or (ended.exit_code != 0 and not ended.cancelled):
            raise self._lost(ended)
        text = talk.messages[-1] if talk.messages else ""
        if may_end_with(text, waiting):
            return text
        if talk.did_or_thought:
            raise AgentLost(f"agent {self.name!r} ended its turn without an answer")
        raise AgentRefused(
            f"agent {self.name!r} ended its turn without a reply, which is how codex reports "
            "a refusal; rephrase the request"
        )

    def _warnings(self, turn: Turn, meter: Meter, ended: ProcessExit) -> tuple[str, ...]:
        left_behind = (
            f"agent {self.name!r} did not exit by itself; it may not be possible to resume its conversation",
        )
        own_tools = OWN_TOOLS if self._own.hands else ()
        return (
            *missing_tools(self.name, unknown_names(turn.own_tools, own_tools)),
            *(() if meter.knows_price else unkept_limits(self.name, turn.limits, "usd")),
            *(left_behind if ended.cancelled else ()),
            *confinement_warnings(self.name, ended),
        )

    def _spawn(self, turn: Turn, env: dict[str, str], confinement: Confinement) -> ProcessSpec:
        return ProcessSpec(
            argv=(*self._argv, "app-server"),
            cwd=turn.workspace,
            env=env,
            limits=ProcessLimits(seconds=turn.limits.seconds),
            interactive=True,
            confinement=confinement,
        )

    @asynccontextmanager
    async def _running(self, spawn: ProcessSpec) -> AsyncIterator[Process]:
        """The app server, which is dead with all its children when this is left."""
        with codex_home.without_leftovers(Path(spawn.cwd)):
            process = await self._deps.launcher.start(spawn)
            try:
                yield process
            finally:
                await process.end(GRACE_SECONDS)

    async def _confinement(self, turn: Turn, home: Home, door: HookDoor) -> Confinement:
        hosts, address = ABOUT["codex"].hosts, self._options.base_url
        needs = Needs(writable=home.folders, hosts=hosts, base_url=address, command=self._argv)
        return await confinement_for(self._deps, turn, door, needs)

    async def _leave(self, process: Process) -> ProcessExit:
        """Let codex put the conversation away, so that it can be continued."""
        process.close_input()
        waiting = asyncio.ensure_future(process.wait())
        await asyncio.wait({waiting}, timeout=LAST_SECONDS)
        if not waiting.done():
            await process.end(GRACE_SECONDS)
        return await waiting

    async def _version(self, turn: Turn) -> str:
        try:
            return await version_of(self._deps.launcher, self._argv, turn.workspace)
        except ToolMissing as missing:
            raise ToolMissing(f"{missing}; {INSTALL}") from None

    async def _sandbox(self, turn: Turn, home: Home) -> tuple[codex_home.Sandbox, tuple[str, ...]]:
        """Codex's own sandbox where it works; it needs user namespaces, which not every machine gives."""
        if not self._own.hands:
            return "read-only", ()
        if (await self._deps.confinement_provider.confinement(turn.workspace)).kind == "kernel":
            # Its own cannot be put up inside ours, and would keep it from committing.
            return "danger-full-access", ()
        if self._own.sandbox is not None:
            return self._own.sandbox, ()
        if self._argv not in _sandbox_works:
            _sandbox_works[self._argv] = await self._try_sandbox(turn, home)
        if _sandbox_works[self._argv]:
            return "workspace-write", ()
        return "danger-full-access", (
            f"codex's own sandbox does not work here; commands of {self.name!r} run without it",
        )

    async def _try_sandbox(self, turn: Turn, home: Home) -> bool:
        ended = await self._deps.launcher.run(
            ProcessSpec(
                argv=(*self._argv, "sandbox", "--", "true"),
                cwd=turn.workspace,
                env=self._plain_environment(home),
                limits=ProcessLimits(seconds=30.0, output_bytes=10_000),
            )
        )
        return ended.exit_code == 0

    def _plain_environment(self, home: Home) -> dict[str, str]:
        """Return codex's environment outside of a turn: neither key nor door."""
        (home.path / codex_home.CODEX_HOME).mkdir(mode=0o700, exist_ok=True)
        return codex_home.environment(home, AgentOptions(name=self.name), {})


def _question(turn: Turn) -> dict[str, Any]:
    schema = strict_schema(turn.contract) if turn.contract is not None else None
    prompt = turn.prompt_for(native=schema is not None)
    question: dict[str, Any] = {"input": [{"type": "text", "text": prompt}]}
    return question if schema is None else {**question, "outputSchema": schema}


def _payload(turn: Turn, text: str) -> tuple[Json, bool]:
    """Return the payload of codex's own schema feature; nothing when it could not be used, or gave no JSON."""
    if turn.contract is None or strict_schema(turn.contract) is None:
        return None, False
    try:
        return load_object(text), True
    except ValueError:
        return None, False
