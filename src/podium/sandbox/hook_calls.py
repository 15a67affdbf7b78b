"""Calls of one turn through the hook server, from request to settlement."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from podium.core.decisions import (
    BuiltInRule,
    Call,
    CallOutcome,
    Permit,
    Receipt,
    Refusal,
    Tier,
    ToolSpec,
    call_fingerprint,
)
from podium.core.errors import (
    AgentMustAct,
    BadArguments,
    BadInput,
    CallInDoubt,
    CallRefused,
    TimedOut,
    UnknownTool,
)
from podium.core.events import ModelAnswered, NoteTaken, ToolRefused
from podium.core.model import Json
from podium.core.tool_replies import offered_schema
from podium.core.turns import GRANTED_AS, Finish, ModelAnswer, Turn, granted_names
from podium.ports import Journal, Toolbox, ToolDoor, Translate, nameless_use
from podium.sandbox.hook_messages import (
    Answer,
    AnyMessage,
    PerformMessage,
    RequestMessage,
    SettleMessage,
    TurnProblems,
    denial,
    mistake,
    outcome_answer,
    permit_answer,
    receipt_answer,
    refusal_answer,
    tools_answer,
)
from podium.sandbox.hook_state import FINISH, CallLimits, ExpectedUses, ProgressNotes, TurnMemory

T = TypeVar("T")


MAX_LIKE_CALLS = 1_000_000
"""More than one asking makes of the same wish, so that askings do not get into each other's numbers."""


NO_HANDS = "you have no tools of your own here; use the tools that you were given"


def as_it_is(tool: str, arguments: dict[str, Json]) -> tuple[str, dict[str, Json]]:
    """The translation for programs that use the registry's own names."""
    return tool, arguments


class OpenCall:
    """A permitted call that is not settled yet, and how its program speaks of it."""

    def __init__(self, permit: Permit, message: RequestMessage, began: float) -> None:
        self.permit = permit
        self.message = message
        self.began = began

    def is_meant_by(self, message: SettleMessage) -> bool:
        if message.call:
            return message.call == self.permit.call.key
        if message.ref:
            return message.ref == self.message.ref
        return (message.tool, message.arguments) == (self.message.tool, self.message.arguments)


class TurnCalls:
    """Answers messages for one turn. Whatever goes wrong, the answer is a denial."""

    def __init__(
        self,
        turn: Turn,
        tool_door: ToolDoor,
        toolbox: Toolbox,
        journal: Journal,
        *,
        agent: str,
        translate: Translate,
        answer_seconds: float,
        perform_seconds: float,
        expect_seconds: float,
        redact: Callable[[str], str],
        memory: TurnMemory | None = None,
        hands: bool = True,
    ) -> None:
        self._turn = turn
        self._hands = hands
        self.memory = memory or TurnMemory()
        self.limits = CallLimits(turn.limits)
        self.finished_with: Finish | None = None
        self._tool_door = tool_door
        self._toolbox = toolbox
        self._journal = journal
        self._agent = agent
        self._translate = translate
        self._answer_seconds = answer_seconds
        self._perform_seconds = perform_seconds
        self.expected = ExpectedUses(expect_seconds)
        self._open: dict[str, OpenCall] = {}
        self._judging: set[asyncio.Task[Any]] = set()
        self._performing: set[asyncio.Task[Any]] = set()
        self._asked: Counter[str] = Counter()
        self.waiting_approvals: list[str] = []
        self.problems = TurnProblems()
        self.progress = ProgressNotes(journal, turn, agent, redact)
        self._paths = {spec.name: spec.paths for spec in toolbox.specs()}
        self._observed_only = {spec.name for spec in toolbox.specs() if spec.observed_only}
        self._tiers = {spec.name: spec.tier for spec in toolbox.specs()}
        self.doubt: CallInDoubt | None = None
        """A call of this turn whose outcome only a person can tell."""

    @property
    def unsettled(self) -> tuple[Permit, ...]:
        return tuple(call.permit for call in self._open.values())

    async def answer(self, message: AnyMessage, *, is_hook: bool = False) -> Answer:
        if isinstance(message, RequestMessage) and not self._hands:
            return await self._refused(message, None, CallRefused(NO_HANDS))
        if isinstance(message, RequestMessage):
            return await (self._judge_hook(message) if is_hook else self._judge(message))
        if isinstance(message, PerformMessage):
            return await self._perform(message)
        if isinstance(message, SettleMessage):
            return await self._settle(message)
        return tools_answer(self.specs())

    def specs(self) -> list[ToolSpec]:
        """The tools this turn is shown, with their schemas as models are shown them."""
        return [
            spec.model_copy(update={"input_schema": offered_schema(spec.input_schema)})
            for spec in self._toolbox.specs()
            if self._is_allowed(spec.name) and self._is_offered(spec)
        ]

    def _is_offered(self, spec: ToolSpec) -> bool:
        if spec.offered == "in_git":
            return os.path.lexists(Path(self._turn.workspace) / ".git")
        if spec.offered == "by_name":
            return self._turn.allowed_tools is not None
        if spec.offered == "without_contract":
            # The answer itself ends the turn: a second way to end it would contradict the prompt.
            return self._turn.contract is None
        return not spec.observed_only

    async def settle(self, call_key: str, outcome: CallOutcome) -> Receipt:
        """Settle an open call by its key. Raises `BadInput` when there is none."""
        call = self._open.pop(call_key, None)
        if call is None:
            raise BadInput(f"no open call {call_key!r} in this turn; it may be settled already")
        try:
            return await self._tool_door.settle(call.permit, outcome)
        except BaseException:
            self._open[call_key] = call
            raise

    async def close(self) -> None:
        """Stop what Podium performs, let judgements come to their end, abandon what is open.

        What went wrong at the door is noted in the run's journal, once.
        """
        for task in self._performing:
            task.cancel()
        await asyncio.gather(*self._judging, *self._performing, return_exceptions=True)
        for permit in self.unsettled:
            try:
                await self._tool_door.abandon(permit)
                del self._open[permit.call.key]
            except Exception as error:
                self.problems.add(error)
        self.progress.flush()
        await self._note_problems()

    async def _note_problems(self) -> None:
        text = self.problems.as_text()
        if not text:
            return
        try:
            await self._journal.append(self._turn.run_id, NoteTaken(text=text))
        except Exception as error:
            # Where nothing can be written nobody can be told; the turn's own end says more.
            self.problems.add(error)

    async def _judge_hook(self, message: RequestMessage) -> Answer:
        """Judge what a hook asks for, unless it is something that its CLI does not want to do."""
        use = message.ref or nameless_use(message.tool, message.arguments)
        try:
            await self.expected.take(use)
        except CallRefused as error:
            return await self._refused(message, None, error)
        return await self._judge(message.model_copy(update={"ref": use}))

    async def _judge(self, message: RequestMessage) -> Answer:
        call: Call | None = None
        try:
            self.limits.begin(message.tool)
            call = self._normalise(message.tool, message.arguments, observed=True)
            work = self._request(call, message)
            answer = await self._bounded(work, self._judging, self._answer_seconds)
        except Exception as error:
            self._keep_doubt(error)
            return await self._refused(message, call, error)
        return self._refusal(answer) if isinstance(answer, Refusal) else permit_answer(answer)

    async def _request(self, call: Call, message: RequestMessage) -> Permit | Refusal:
        """Kept apart from the waiting: a permit that comes too late for its asker is still on our books."""
        answer = await self._tool_door.request(call)
        if isinstance(answer, Permit) and answer.settled is None:
            began = asyncio.get_running_loop().time()
            self._open[call.key] = OpenCall(answer, message, began)
        return answer

    async def _perform(self, message: PerformMessage) -> Answer:
        try:
            self.limits.begin(message.tool)
            call = self._normalise(message.tool, message.arguments, observed=False)
        except Exception as error:
            return await self._refused(message, None, error)
        try:
            work = self._toolbox.perform(call)
            answer = await self._bounded(work, self._performing, self._perform_seconds)
        except Exception as error:
            # The toolbox has recorded what became of it: to call it refused would be a guess.
            self._keep_doubt(error)
            self.problems.add(error)
            return denial(f"{_refusal_text(error)} (call {call.key})")
        self.limits.ended(call, answer, changes=self._tiers[call.tool] > Tier.T0)
        if isinstance(answer, Refusal):
            return self._refusal(answer)
        if call.tool == FINISH and answer.ok:
            self.finished_with = Finish.model_validate(answer.result)
        return outcome_answer(call.key, answer)

    async def record_answer(self, answer: ModelAnswer) -> None:
        body = ModelAnswered(
            step=self._turn.step_key,
            asking=self._turn.asking,
            role=self._turn.role,
            agent=self._agent,
            answer=answer,
        )
        self.progress.flush()
        await self._journal.append(self._turn.run_id, body)
        self.memory.keep(answer)

    def _keep_doubt(self, error: Exception) -> None:
        if isinstance(error, CallInDoubt):
            self.doubt = error

    async def _settle(self, message: SettleMessage) -> Answer:
        meant = [call for call in self._open.values() if call.is_meant_by(message)]
        if not meant:
            named = message.call or message.ref or message.tool
            raise BadInput(f"no open call {named!r} in this turn; it may be settled already")
        seconds = asyncio.get_running_loop().time() - meant[0].began
        outcome = CallOutcome(
            ok=message.ok, result=message.result, error=message.error, duration_seconds=seconds
        )
        work = self.settle(meant[0].permit.call.key, outcome)
        return receipt_answer(await self._bounded(work, self._judging, self._answer_seconds))

    def _take_index(self, fingerprint: str) -> int:
        """Calls for the same thing are counted; other calls may come in any order."""
        index = self._asked[fingerprint]
        self._asked[fingerprint] += 1
        return self._turn.asking * MAX_LIKE_CALLS + index

    def _normalise(self, tool: str, arguments: dict[str, Json], *, observed: bool) -> Call:
        name, translated = self._translate(tool, arguments)
        if not self._may_use(tool, name, translated, observed):
            self._refuse_tool(tool, name)
        if observed:
            self._refuse_odd_paths(name, translated)
        call = self._toolbox.normalise(
            name,
            translated,
            run_id=self._turn.run_id,
            step_key=self._turn.step_key,
            index=0,
            role=self._turn.role,
            agent=self._agent,
            provenance=self._turn.provenance,
            observed=observed,
            root=self._turn.workspace,
        )
        return call.model_copy(update={"index": self._take_index(call.fingerprint)})

    def _refuse_tool(self, asked: str, tool: str) -> NoReturn:
        """Raise `CallRefused` for a tool that others have, and `UnknownTool` for one that nobody has."""
        names = [spec.name for spec in self.specs()]
        if tool not in self._tiers or tool in self._observed_only:
            raise UnknownTool(asked, names)
        raise CallRefused(
            f"the role {self._turn.role!r} does not have the tool {asked!r}; use one of these: {', '.join(sorted(names))}"
        )

    def _refuse_odd_paths(self, tool: str, arguments: dict[str, Json]) -> None:
        """Programs trim blanks, follow `~` and drop an `@`, each in its own way: what is judged
        would not be what they use."""
        for path in self._paths.get(tool, ()):
            value = arguments.get(path.name)
            if isinstance(value, str) and (value != value.strip() or value[:1] in ("~", "@")):
                raise BadArguments(
                    tool,
                    [
                        f"{path.name!r} is {value!r}; remove spaces around it, and a `~` or `@` before it"
                    ],
                )

    def _is_allowed(self, tool: str) -> bool:
        allowed = self._turn.allowed_tools
        return allowed is None or tool in allowed

    def _may_use(self, asked: str, tool: str, arguments: dict[str, Json], observed: bool) -> bool:
        """Tell whether the turn's role has the tool. Agents' own ones must be named by the role."""
        if not observed and tool in self._observed_only:
            return False
        grant = GRANTED_AS.get(tool)
        if grant is None:
            return self._is_allowed(tool)
        granted = granted_names(self._turn.own_tools)
        # What an agent calls its subagent is its own choice; what it calls a tool is not.
        names = (grant, tool, asked, *([arguments.get("name")] if tool == "own_tool" else []))
        return any(name in granted for name in names)

    def _refusal(self, refusal: Refusal) -> Answer:
        waiting = refusal.approval_id
        if waiting is not None and waiting not in self.waiting_approvals:
            self.waiting_approvals.append(waiting)
        return refusal_answer(refusal)

    async def _refused(
        self, message: RequestMessage | PerformMessage, call: Call | None, error: Exception
    ) -> Answer:
        """Refuse a call that never came to a judgement, and record that."""
        refusal_text = _refusal_text(error)
        answer = (
            mistake(refusal_text)
            if isinstance(error, BadArguments | UnknownTool)
            else denial(refusal_text)
        )
        if isinstance(error, BadArguments) and error.shape and isinstance(message, PerformMessage):
            answer["say"] = f"{refusal_text}. {error.shape}"
        key = call.key if call else self._key_as_asked(message)
        if key in self.memory.refused:
            return answer
        self.problems.add(error)
        body = ToolRefused(
            call=key,
            tool=message.tool,
            arguments=message.arguments,
            effect="deny",
            tier=str(Tier.T4),  # what cannot be judged counts as the worst
            rule=BuiltInRule.HOOK_DOOR,
            reason=refusal_text,
        )
        try:
            await self._journal.append(self._turn.run_id, body)
        except Exception as failure:
            self.problems.add(failure)
        return answer

    def _key_as_asked(self, message: RequestMessage | PerformMessage) -> str:
        """The key for a wish that could not be made a call."""
        fingerprint = call_fingerprint(message.tool, message.arguments)
        index = self._take_index(fingerprint)
        return f"{self._turn.run_id}:{self._turn.step_key}:{fingerprint}.{index}"

    async def _bounded(
        self, work: Coroutine[Any, Any, T], tasks: set[asyncio.Task[Any]], seconds: float
    ) -> T:
        """Wait for work no longer than this. The work itself goes on: it may be half recorded."""
        task = asyncio.get_running_loop().create_task(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        done, _ = await asyncio.wait({task}, timeout=seconds)
        if not done:
            task.add_done_callback(self._note_late_failure)
            raise TimedOut(f"no answer within {seconds:g} seconds; the call is denied")
        return task.result()

    def _note_late_failure(self, task: asyncio.Task[Any]) -> None:
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            self.problems.add(error)


def _refusal_text(error: Exception) -> str:
    """The message for the agent. The insides of Podium are kept for people."""
    if isinstance(error, AgentMustAct | TimedOut):
        return str(error)
    kind = type(error).__name__
    return f"the call could not be checked ({kind}) and is denied; try once more, or continue without it"
