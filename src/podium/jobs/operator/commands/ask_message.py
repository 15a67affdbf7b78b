"""One message of `podium ask` or `podium undo`: operator built, message processed, always answered."""

from __future__ import annotations

import shlex
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence

from podium.app.app import Podium
from podium.cli.context import CliContext
from podium.cli.identity import approver
from podium.core.approval_steps import approval_named_in
from podium.core.errors import BadInput, Interrupted, NotPossibleNow, PodiumError
from podium.core.model import Json
from podium.core.work import Run
from podium.jobs.operator.answers import REFUSED, Answers
from podium.jobs.operator.composition import (
    OperatorSetup,
    build_conversation,
    build_selection,
    operator_options,
)
from podium.jobs.operator.message_context import Typed, context_of, message_of
from podium.jobs.operator.models import OperatorAnswer, OperatorMode
from podium.jobs.operator.run_view import Started, followed
from podium.jobs.operator.session import SessionMemory, StoredSession

START_TASK = "project.start_task"
"""The tool of pack `podium` that puts a run into a queue."""
QUEUED = (OperatorMode.ENQUEUE, OperatorMode.ENQUEUE_AND_WAIT)
Process = Callable[[Podium, OperatorSetup, Started], Awaitable[OperatorAnswer]]


Remember = Callable[[Podium], SessionMemory]


def asked(
    cli: CliContext, typed: Typed, argument: str, message: str = "", *, approve: bool = False
) -> OperatorAnswer:
    """Answer one message from the command line."""

    def stored(podium: Podium) -> SessionMemory:
        return StoredSession(podium, podium.settings.user, typed.session)

    def work() -> OperatorAnswer:
        text = message_of(argument, message)
        context = context_of(typed.pairs, typed.file)
        memory = stored if typed.session else None
        return answered(cli, typed, text, context, approve=approve, memory=memory)

    return answer_or_error(cli, message or argument, typed, work)


def answered(
    cli: CliContext,
    typed: Typed,
    text: str,
    context: Mapping[str, Json],
    *,
    approve: bool,
    memory: Remember | None = None,
) -> OperatorAnswer:
    """Answer a message, in a conversation where there is a memory. The approval of an unknown id opens no database."""
    if (action_id := approval_named_in(text)) is not None:
        cli.must_have_state("approval", action_id)

    async def process(podium: Podium, setup: OperatorSetup, started: Started) -> OperatorAnswer:
        operator = (
            await build_conversation(podium, setup, memory(podium))
            if memory
            else await build_selection(podium, setup)
        )
        return await operator.process(
            text, typed.mode, context, approve, started=started, mode_explicit=typed.mode_explicit
        )

    return put(cli, typed, process)


def put(cli: CliContext, typed: Typed, process: Process) -> OperatorAnswer:
    """Run an operator's work and show its progress."""

    async def work(podium: Podium) -> OperatorAnswer:
        async def served(run: Run) -> None:
            await _serve(cli, podium, run)

        if typed.mode in QUEUED:
            from podium.app.work_request import queue_named

            queue_named(
                cli.configuration, operator_options(podium).queue
            )  # before anything is stored
        setup = OperatorSetup(
            typed.packs,
            typed.classifier,
            worker_is_there=served,
            approver=lambda: approver(cli),
        )
        async with followed(
            cli, podium, show_progress=typed.mode != OperatorMode.ENQUEUE
        ) as started:
            answer = await process(podium, setup, started)
        for run in await _runs_started(podium, answer):
            await _serve(cli, podium, run)
        return answer

    return cli.run(work)


async def _serve(cli: CliContext, podium: Podium, run: Run) -> None:
    """Ensure that a worker serves the queue of a run, or say how to start one."""
    # Late: only what is queued needs somebody to serve the queue.
    from podium.app.work_request import queue_named
    from podium.cli.detached_run import ensure_served

    spec = queue_named(cli.configuration, run.queue or "")
    handed = await ensure_served(podium, run, spec)
    if not handed.taken and not handed.workers:
        labels = f" --label {','.join(spec.labels)}" if spec.labels else ""
        cli.screen.stderr_line(
            f"podium: no worker serves queue {spec.name!r}; start one with "
            f"`podium worker --queue {spec.name}{labels}`"
        )


async def _runs_started(podium: Podium, answer: OperatorAnswer) -> list[Run]:
    """Find the runs that calls of the plan have queued."""
    ids = [result.fields.get("run_id") for result in answer.results if result.tool == START_TASK]
    if not any(ids):
        return []
    store = await podium.store()
    runs = await store.read(lambda view: [view.run(run_id) for run_id in ids if run_id])
    return [run for run in runs if run is not None and run.queue is not None]


def answer_or_error(
    cli: CliContext, message: str, typed: Typed, work: Callable[[], OperatorAnswer]
) -> OperatorAnswer:
    """Return the answer, or one with the error. Only an interruption is raised."""
    try:
        answer = work()
    except Interrupted:
        raise
    except PodiumError as error:
        if cli.options.debug:
            traceback.print_exception(error)
        answer = _without_answer(message, typed.mode, error)
    return _with_options(answer, cli, typed.options)


def _without_answer(message: str, mode: str, error: PodiumError) -> OperatorAnswer:
    answer = Answers().not_understood(message, mode, str(error).splitlines())
    refused = isinstance(error, (BadInput, NotPossibleNow))
    code = REFUSED if refused else error.exit_code
    return answer.model_copy(update={"status": "error", "exit_code": code})


def _with_options(
    answer: OperatorAnswer, cli: CliContext, options: Sequence[str]
) -> OperatorAnswer:
    """Add the options of this command to the commands of the answer, ready to paste."""
    project = ["--project", str(cli.options.project)] if cli.options.project else []

    def fitted(action: str) -> str:
        asks = "podium ask -m " in action and " --pack " not in action
        more = [*(options if asks else ()), *(project if ": podium " in action else ())]
        return f"{action} {shlex.join(more)}" if more else action

    actions = tuple(fitted(action) for action in answer.next_actions)
    return answer.model_copy(update={"next_actions": actions})
