"""One message put to the operator: built, processed, and answered whatever happens."""

from __future__ import annotations

import shlex
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence

from podium.cli.door import Door
from podium.cli.login import approver
from podium.cli.operator_context import Typed, context_of, message_of
from podium.cli.operator_telling import Started, followed
from podium.domain.approving import approval_named_in
from podium.domain.errors import BadInput, Interrupted, NotPossibleNow, PodiumError
from podium.domain.model import Json
from podium.domain.operating import OperatorAnswer, OperatorMode
from podium.domain.work import Run
from podium.flows.operator import Operator
from podium.flows.operator.answers import REFUSED, Answers
from podium.wiring import Podium
from podium.wiring.operating import OperatorWish, build_operator, operator_options

QUEUED = (OperatorMode.ENQUEUE, OperatorMode.ENQUEUE_AND_WAIT)
Process = Callable[[Podium, Operator, Started], Awaitable[OperatorAnswer]]


def asked(
    door: Door, typed: Typed, words: str, message: str = "", *, approve: bool = False
) -> OperatorAnswer:
    """The answer to one message from the command line."""

    def work() -> OperatorAnswer:
        text = message_of(words, message)
        known = context_of(typed.pairs, typed.file)
        return answered(door, typed, text, known, approve=approve)

    return told_anyway(door, message or words, typed, work)


def answered(
    door: Door, typed: Typed, text: str, context: Mapping[str, Json], *, approve: bool
) -> OperatorAnswer:
    """The operator's answer to a message. A yes to nothing opens no database."""
    if (action_id := approval_named_in(text)) is not None:
        door.must_have_state("approval", action_id)

    async def process(podium: Podium, operator: Operator, started: Started) -> OperatorAnswer:
        return await operator.process(text, typed.mode, context, approve, started=started)

    return put(door, typed, process)


def put(door: Door, typed: Typed, process: Process) -> OperatorAnswer:
    """Let an operator do something, and tell how it goes."""

    async def work(podium: Podium) -> OperatorAnswer:
        async def served(run: Run) -> None:
            # Late: only what is queued needs somebody to serve the queue.
            from podium.cli.detaching import see_that_it_is_served
            from podium.wiring.queues import queue_named

            spec = queue_named(door.configuration, run.queue or "")
            handed = await see_that_it_is_served(podium, run, spec)
            if not handed.taken and not handed.workers:
                labels = f" --label {','.join(spec.labels)}" if spec.labels else ""
                door.screen.aside(
                    f"podium: nobody serves queue {spec.name!r} yet; where it may be done, start "
                    f"`podium worker --queue {spec.name}{labels}`"
                )

        if typed.mode in QUEUED:
            from podium.wiring.queues import queue_named

            queue_named(
                door.configuration, operator_options(podium).queue
            )  # before anything is stored
        wish = OperatorWish(
            typed.pack,
            typed.classifier,
            worker_is_there=served,
            approver=lambda: approver(door),
        )
        operator = await build_operator(podium, wish)
        async with followed(door, podium, tell=typed.mode != OperatorMode.ENQUEUE) as started:
            return await process(podium, operator, started)

    return door.run(work)


def told_anyway(
    door: Door, message: str, typed: Typed, work: Callable[[], OperatorAnswer]
) -> OperatorAnswer:
    """The answer, or one that says why there is none. Only an interruption gets past it."""
    try:
        answer = work()
    except Interrupted:
        raise
    except PodiumError as error:
        if door.options.debug:
            traceback.print_exception(error)
        answer = _without_answer(message, typed.mode, error)
    return _with_options(answer, door, typed.options)


def _without_answer(message: str, mode: str, error: PodiumError) -> OperatorAnswer:
    told = Answers().not_understood(message, mode, str(error).splitlines())
    refused = isinstance(error, (BadInput, NotPossibleNow))
    code = REFUSED if refused else error.exit_code
    return told.model_copy(update={"status": "error", "exit_code": code})


def _with_options(answer: OperatorAnswer, door: Door, options: Sequence[str]) -> OperatorAnswer:
    """The same answer, its commands with the options that this one was given: to be pasted as they are."""
    project = ["--project", str(door.options.project)] if door.options.project else []

    def fitted(action: str) -> str:
        asks = "podium ask -m " in action
        more = [*(options if asks else ()), *(project if ": podium " in action else ())]
        return f"{action} {shlex.join(more)}" if more else action

    actions = tuple(fitted(action) for action in answer.next_actions)
    return answer.model_copy(update={"next_actions": actions})
