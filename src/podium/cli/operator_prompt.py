"""`podium ask --interactive`: one message after the other at a prompt."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from podium.cli.door import Door
from podium.cli.operator_asking import Started, put, show
from podium.cli.operator_context import context_of, parted
from podium.domain.errors import BadInput, Interrupted, PodiumError
from podium.domain.model import Json
from podium.domain.operating import OperatorAnswer, OperatorMode
from podium.flows.operator import Operator
from podium.flows.operator.blocks import blocks
from podium.usecases import list_receipts
from podium.wiring import Podium

PROMPT = "operator> "
HISTORY = "operator_history"
MOST_HISTORY = 1_000
HELP = """:mode [MODE]          show or set the mode: analyze, plan, enqueue, enqueue_and_wait, execute
:approve              say yes to the next plan, and to no other
:context              show what is known; :context NAME=VALUE adds, :context file FILE reads, :context clear forgets
:plan                 the last plan in full, with its verification
:receipts             the receipts of the last run
:help                 this
:quit                 leave (Ctrl-D too)
APPROVE: ID           release the plan that waits under ID
anything else         is put to the operator"""


@dataclass
class Talk:
    """Where a conversation stands."""

    door: Door
    mode: str
    pack: str
    classifier: str
    context: dict[str, Json] = field(default_factory=dict)
    armed: bool = False
    """The next plan is approved, whatever it is; it alone."""
    last: OperatorAnswer | None = None

    def say(self, text: str) -> None:
        self.door.screen.line(text)


def converse(
    door: Door, *, mode: str, given: Sequence[str], file: Path | None, pack: str, classifier: str
) -> None:
    """Read lines until there are no more. A fault in one is told, and the next is read."""
    talk = Talk(door, OperatorMode.ANALYZE.value, pack, classifier)
    _set_mode(talk, mode)
    talk.context = context_of(given, file)
    with suppress(EOFError):
        _prepare_reading(door)
        while True:
            try:
                line = _read_line()
            except KeyboardInterrupt:
                talk.say("")
                continue
            if line in (":quit", ":q", ":exit"):
                return
            _answer(talk, line)


def _answer(talk: Talk, line: str) -> None:
    if not line.strip():
        return
    try:
        if line.startswith(":"):
            _command(talk, line)
        else:
            _message(talk, line)
    except Interrupted as error:
        talk.door.screen.aside(f"podium: {error}; {talk.door.options.parting_words}")
    except PodiumError as error:
        talk.door.screen.aside(f"podium: {error}")


def _message(talk: Talk, line: str) -> None:
    approve, talk.armed = talk.armed, False

    async def process(podium: Podium, operator: Operator, started: Started) -> OperatorAnswer:
        return await operator.process(line, talk.mode, talk.context, approve, started=started)

    answer = put(talk.door, line, talk.mode, process, pack=talk.pack, classifier=talk.classifier)
    talk.last = answer if answer.plan is not None or answer.run_id else talk.last
    show(talk.door, answer)
    if approve and answer.plan is None:
        talk.armed = True  # there was no plan to say yes to
    elif approve and answer.mode is not None and not answer.mode.acts:
        talk.door.screen.aside(f"podium: the yes was for this plan, and {talk.mode} does nothing")


def _command(talk: Talk, line: str) -> None:
    name, _, rest = line[1:].partition(" ")
    command = COMMANDS.get(name)
    if command is None:
        raise BadInput(f"there is no :{name}; :help lists what there is")
    command(talk, rest.strip())


def _set_mode(talk: Talk, mode: str) -> None:
    if mode and mode not in list(OperatorMode):
        raise BadInput(f"there is no mode {mode!r}; modes: {', '.join(OperatorMode)}")
    talk.mode = mode or talk.mode


def _mode(talk: Talk, rest: str) -> None:
    _set_mode(talk, rest)
    talk.say(f"Mode set to: {talk.mode}" if rest else f"Mode: {talk.mode}")


def _approve(talk: Talk, rest: str) -> None:
    talk.armed = True
    talk.say("Approval flag: true (for the next plan, and no other)")


def _context(talk: Talk, rest: str) -> None:
    if rest == "clear":
        talk.context = {}
    elif rest.startswith("file "):
        talk.context = {**talk.context, **context_of([], Path(rest.removeprefix("file ").strip()))}
    elif rest:
        name, value = parted(rest)
        talk.context[name] = value
    talk.say(json.dumps(talk.context, ensure_ascii=False, indent=2))


def _plan(talk: Talk, rest: str) -> None:
    if talk.last is None or talk.last.plan is None:
        raise BadInput("there is no plan yet; put a message first")
    looked = talk.last.model_copy(update={"mode": OperatorMode.PLAN, "results": ()})
    talk.say(blocks(looked))


def _receipts(talk: Talk, rest: str) -> None:
    run_id = rest or (talk.last.run_id if talk.last else None)
    if not run_id:
        raise BadInput("nothing was run yet; :mode execute, then put a message")

    async def work(podium: Podium) -> None:
        for receipt in await list_receipts(await podium.store(), run_id):
            fields = json.dumps(receipt.fields, ensure_ascii=False)
            talk.say(f"{receipt.number}. {receipt.tool} {receipt.status} {receipt.tier} {fields}")

    talk.door.run(work)


def _help(talk: Talk, rest: str) -> None:
    talk.say(HELP)


COMMANDS: dict[str, Callable[[Talk, str], None]] = {
    "mode": _mode,
    "approve": _approve,
    "context": _context,
    "plan": _plan,
    "receipts": _receipts,
    "help": _help,
}
"""What may be typed after a colon."""


def _read_line() -> str:
    if sys.stdin.isatty():
        return input(PROMPT)
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.rstrip("\n")


def _prepare_reading(door: Door) -> None:
    """History and completion, where somebody types."""
    if not sys.stdin.isatty():
        return
    import atexit
    import readline

    file = door.configuration.folders.user_state / HISTORY
    with suppress(OSError):
        readline.read_history_file(file)
    readline.set_history_length(MOST_HISTORY)
    readline.set_completer_delims(" ")
    readline.set_completer(_completed)
    readline.parse_and_bind("tab: complete")
    atexit.register(_keep_history, file)


def _keep_history(file: Path) -> None:
    import readline

    with suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        readline.write_history_file(file)
        file.chmod(0o600)


def _completed(text: str, state: int) -> str | None:
    words = [*(f":{name}" for name in (*COMMANDS, "quit")), *OperatorMode, "APPROVE:"]
    found = [word for word in words if word.startswith(text)]
    return found[state] if state < len(found) else None
