"""`podium ask --interactive`: a prompt with history and completion, one message after the other."""

from __future__ import annotations

import os
import secrets
import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import TracebackType

import typer

from podium.app.app import Podium
from podium.cli.context import CliContext
from podium.core.decisions import Receipt
from podium.core.errors import BadInput, Interrupted, PodiumError
from podium.core.model import Json
from podium.jobs.operator.answer_blocks import blocks
from podium.jobs.operator.commands.ask_message import answer_or_error, answered
from podium.jobs.operator.message_context import Typed, context_of, parted
from podium.jobs.operator.models import OperatorAnswer, OperatorMode
from podium.jobs.operator.run_view import show, show_text
from podium.jobs.operator.session import (
    HeldTurns,
    PromptSession,
    Session,
    SessionMemory,
    StoredSession,
    list_sessions,
    must_be_session_name,
)
from podium.platform import make_private_folder
from podium.render.argument_text import in_line, long_values, short_values
from podium.render.text import escaped_line, local_time

PROMPT = "operator> "
HISTORY = "operator_history"
MAX_HISTORY = 1_000
MAX_EXCERPT = 60
_MAX_LINE = 100_000
"""Characters read of a line, far above the limit of a message; the rest is skipped."""


class LineReader:
    """Reads lines, and raises `EOFError` after the last. Saves the history on exit."""

    def __init__(self, cli: CliContext, commands: Sequence[str], packs: tuple[str, ...]) -> None:
        self._cli = cli
        self._completions = [*commands, *OperatorMode, "APPROVE:"]
        self._packs = packs
        self._typed = sys.stdin.isatty()
        self._history: Path | None = None

    def __enter__(self) -> LineReader:
        if self._typed:
            self._prepare()
        else:
            # Invalid UTF-8 is reported as a problem of the message, and the next line is read.
            getattr(sys.stdin, "reconfigure", lambda **_: None)(errors="surrogateescape")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._history is not None:
            self._keep_history(self._history)

    def next_line(self) -> str:
        """Read a line without its end. Ctrl-C discards the typed part."""
        if not self._typed:
            return self._piped()
        while True:
            try:
                return input(PROMPT)
            except KeyboardInterrupt:
                self._cli.screen.line()
            except EOFError:
                self._cli.screen.line()
                raise

    def _piped(self) -> str:
        line = sys.stdin.readline(_MAX_LINE)
        if not line:
            raise EOFError
        rest = line
        while rest and not rest.endswith("\n"):
            rest = sys.stdin.readline(_MAX_LINE)
        return line.rstrip("\n")

    def _prepare(self) -> None:
        import readline

        file = self._cli.configuration.folders.user_state / HISTORY
        with suppress(OSError):
            readline.read_history_file(file)
        readline.set_history_length(MAX_HISTORY)
        readline.set_completer_delims(" ")
        readline.set_completer(self._completed)
        edits_like_bsd = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if edits_like_bsd else "tab: complete")
        self._history = file

    def _keep_history(self, file: Path) -> None:
        """Save the typed lines without the secrets in them, readable by their owner alone."""
        import readline

        redact = Podium(self._cli.configuration, os.environ).redactor.text
        for index in range(readline.get_current_history_length()):
            line = readline.get_history_item(index + 1) or ""
            if (redacted := redact(line)) != line:
                readline.replace_history_item(index, redacted)
        with suppress(OSError):
            make_private_folder(file.parent)
            os.close(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600))
            readline.write_history_file(file)

    def _completed(self, text: str, state: int) -> str | None:
        candidates = (
            self._completions if text[:1] in (":", "A") else [*self._completions, *self._tools]
        )
        matches = [candidate for candidate in candidates if candidate.startswith(text)]
        return f"{matches[state]} " if state < len(matches) else None

    @cached_property
    def _tools(self) -> list[str]:
        """Names of tools and skills, loaded on first use; none of a broken pack."""
        from podium.app.packs import open_pack
        from podium.jobs.operator.composition import chosen_packs

        podium = Podium(self._cli.configuration, os.environ)
        try:
            names = chosen_packs(podium, self._packs).names
            registries = [open_pack(podium, name).registry for name in names]
        except PodiumError:
            return []
        tools = [tool.name for registry in registries for tool in registry.tools]
        return sorted(tools + [skill.name for registry in registries for skill in registry.skills])


HELP = """\
:mode [MODE]            show or set the mode: analyze, plan, enqueue, enqueue_and_wait, execute
:approve                approve the next plan, and no other
:context                show the context values
:context NAME=VALUE     add a value;  :context file FILE  adds a JSON object,  :context clear  removes all
:pack [NAME …]          show or choose packs of tools;  :pack default  uses those of podium.yaml
:session [NAME]         show this session and your others, or continue NAME;  :session new  begins one
:plan                   show the last plan in full, with its verification
:receipts [RUN]         show the receipts of the last run, or of RUN
:help                   show this help
:quit                   quit (also Ctrl-D); Ctrl-C discards the line or stops waiting
APPROVE: ID             approve the plan that is waiting under ID
podium COMMAND …        run a command that an answer named
anything else           is sent to the operator"""

PASSED_ON = (
    *("approvals", "approve", "ask", "cancel", "habits", "logs", "pack", "receipts"),
    *("reject", "resolve", "resume", "retry", "runs", "show", "undo"),
)
"""Commands allowed at the prompt: those that answers name, and those that only read."""


@dataclass
class Talk:
    """State of a conversation."""

    cli: CliContext
    typed: Typed
    context: dict[str, Json] = field(default_factory=dict)
    armed: bool = False
    """The next plan is approved, whatever it is, and no other."""
    last: OperatorAnswer | None = None
    own_session: str = field(default_factory=lambda: f"prompt-{secrets.token_hex(3)}")
    """Where no session was named: one for this prompt."""
    held: HeldTurns = field(default_factory=HeldTurns)

    @property
    def session(self) -> str:
        return self.typed.session or self.own_session

    def memory(self, podium: Podium) -> SessionMemory:
        person = podium.settings.user
        if self.typed.session:
            return StoredSession(podium, person, self.typed.session)
        return PromptSession(podium, person, self.own_session, self.held)

    def say(self, text: str) -> None:
        self.cli.screen.line(text)


def converse(cli: CliContext, typed: Typed, first: str = "") -> None:
    """Read lines until there are no more. A problem in one is reported, and the next is read."""
    talk = Talk(cli, replace(typed, pairs=(), file=None))
    try:
        _must_be_mode(typed.mode)
        talk.context = context_of(typed.pairs, typed.file)
    except BadInput as error:
        _give_up(cli, typed, first, error)
    if first:
        _answer(talk, first)
    commands = [f":{name}" for name in (*COMMANDS, "quit")]
    with LineReader(cli, commands, typed.packs) as reader, suppress(EOFError):
        while (line := reader.next_line().strip()) not in (":quit", ":q", ":exit"):
            _answer(talk, line)


def _give_up(cli: CliContext, typed: Typed, first: str, error: BadInput) -> None:
    def work() -> OperatorAnswer:
        raise error

    answer = answer_or_error(cli, first or ":help", typed, work)
    show(cli, answer)
    raise typer.Exit(answer.exit_code)


def _answer(talk: Talk, line: str) -> None:
    if not line:
        return
    talk.cli.options.parting_note = ""
    try:
        if line.startswith(":"):
            _command(talk, line)
        elif line.startswith("podium "):
            _pass_on(talk, line)
        else:
            _message(talk, line)
    except (Interrupted, KeyboardInterrupt):
        where = talk.cli.options.parting_note or "nothing was started"
        talk.cli.screen.stderr_line(f"podium: interrupted; {where}")
    except PodiumError as error:
        talk.cli.screen.stderr_line(f"podium: {error}")


def _message(talk: Talk, line: str) -> None:
    approve, talk.armed = talk.armed, False
    answer = answer_or_error(
        talk.cli, line, talk.typed,
        lambda: answered(
            talk.cli, talk.typed, line, talk.context, approve=approve, memory=talk.memory
        ),
    )  # fmt: skip
    talk.last = answer if answer.plan is not None or answer.run_id else talk.last
    show(talk.cli, answer)
    if not talk.cli.screen.json:
        talk.say("")
    if approve and answer.plan is None:
        talk.armed = True
        talk.cli.screen.stderr_line(
            "podium: there was no plan to approve; :approve still applies to the next one"
        )
    elif approve and answer.mode is not None and not answer.mode.acts:
        talk.cli.screen.stderr_line(
            f"podium: the approval was used for this plan, but mode {answer.mode} executes nothing; use "
            ":mode execute and :approve, then send the message again"
        )


def _pass_on(talk: Talk, line: str) -> None:
    """Run a command that an answer named, pasted as it is."""
    # Late: the edge loads whatever the command needs.
    from podium.cli.error_report import run

    try:
        argv = shlex.split(line)[1:]
    except ValueError as error:
        raise BadInput(f"cannot parse the command ({error}); close its quotes") from None
    if not argv or argv[0] not in PASSED_ON or {"-i", "--interactive"} & set(argv):
        raise BadInput(
            f"only these commands work at the prompt: {', '.join(PASSED_ON)}; :quit first to run others"
        )
    project, as_json = talk.cli.options.project, talk.cli.screen.json
    options = ["--project", str(project)] if project else []
    run([*options, *(["--json"] if as_json else []), *argv])


def _command(talk: Talk, line: str) -> None:
    name, _, rest = line[1:].partition(" ")
    command = COMMANDS.get(name)
    if command is None:
        raise BadInput(f"unknown command :{name}; see :help")
    command(talk, rest.strip())


def _must_be_mode(mode: str) -> None:
    if mode not in list(OperatorMode):
        raise BadInput(f"unknown mode {mode[:40]!r}; modes: {', '.join(OperatorMode)}")


def _mode(talk: Talk, rest: str) -> None:
    if rest:
        _must_be_mode(rest)
        talk.typed = replace(talk.typed, mode=rest, mode_explicit=True)
    talk.say(f"Mode set to: {talk.typed.mode}" if rest else f"Mode: {talk.typed.mode}")


def _approve(talk: Talk, rest: str) -> None:
    if rest:
        raise BadInput(f":approve approves the next plan; for a pending one enter APPROVE: {rest}")
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
    if not talk.context:
        talk.say("Context: empty")
        return
    talk.say(f"Context: {in_line(short_values(talk.context))}".rstrip())
    for line in long_values(talk.context, indent=2):
        talk.say(line)


def _pack(talk: Talk, rest: str) -> None:
    requested = () if rest == "default" else tuple(rest.replace(",", " ").split())

    async def names(podium: Podium) -> tuple[str, ...]:
        from podium.app.packs import open_pack
        from podium.jobs.operator.composition import chosen_packs

        chosen = chosen_packs(podium, requested if rest else talk.typed.packs).names
        return tuple(open_pack(podium, name).name for name in chosen)

    chosen = talk.cli.run(names)
    if rest:
        talk.typed = replace(talk.typed, packs=requested)
    talk.say(f"Packs: {', '.join(chosen)}")


def _session(talk: Talk, rest: str) -> None:
    if rest == "new":
        talk.typed, fresh = replace(talk.typed, session=""), Talk(talk.cli, talk.typed)
        talk.own_session, talk.held = fresh.own_session, fresh.held
    elif rest:
        must_be_session_name(rest)
        talk.typed = replace(talk.typed, session=rest)
    talk.say(f"Session: {talk.session}")

    async def work(podium: Podium) -> list[Session]:
        store = await podium.store()
        return await store.read(lambda view: list_sessions(view, podium.settings.user))

    for session in talk.cli.run(work) if talk.cli.has_state else ():
        if session.name != talk.session and session.last is not None:
            excerpt = escaped_line(session.last.full_text, MAX_EXCERPT)
            talk.say(f"  {session.name}: {local_time(session.last.at)} {excerpt}")


def _plan(talk: Talk, rest: str) -> None:
    if talk.last is None or talk.last.plan is None:
        raise BadInput("there is no plan yet; send a message first")
    looked = talk.last.model_copy(update={"mode": OperatorMode.PLAN, "results": ()})
    show_text(talk.cli, blocks(looked))
    talk.say("")


def _receipts(talk: Talk, rest: str) -> None:
    run_id = rest or (talk.last.run_id if talk.last else None)
    if not run_id:
        raise BadInput("nothing has run yet; use :mode execute and send a message")

    async def work(podium: Podium) -> list[Receipt]:
        from podium.app.receipts import list_receipts

        return list(await list_receipts(await podium.store(), run_id))

    talk.cli.must_have_state("run", run_id)
    receipts = talk.cli.run(work)
    for receipt in receipts:
        _say_receipt(talk, receipt)
    if not receipts:
        talk.say("No receipts: nothing was done")


def _say_receipt(talk: Talk, receipt: Receipt) -> None:
    people = f", approved by {', '.join(receipt.approved_by)}" if receipt.approved_by else ""
    at = local_time(receipt.settled_at)
    talk.say(f"{receipt.number}. {receipt.tool}: {receipt.status} ({receipt.tier}{people}) {at}")
    fields = {name: value for name, value in receipt.fields.items() if name != "verification"}
    if receipt.error:
        talk.say(f"     {receipt.error}")
    elif summary := in_line(short_values(fields)):
        talk.say(f"     {summary}")
    for line in long_values(fields, indent=5):
        talk.say(line)


def _help(talk: Talk, rest: str) -> None:
    talk.say(HELP)


COMMANDS: dict[str, Callable[[Talk, str], None]] = {
    "mode": _mode,
    "approve": _approve,
    "context": _context,
    "pack": _pack,
    "session": _session,
    "plan": _plan,
    "receipts": _receipts,
    "help": _help,
}
"""Commands that may be typed after a colon."""
