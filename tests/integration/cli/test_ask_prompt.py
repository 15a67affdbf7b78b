"""`podium ask --interactive` as a person at a terminal meets it, and as a script pipes to it."""

from __future__ import annotations

import fcntl
import os
import pty
import pwd
import select
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.integration.cli.ask_harness import NEW_LEAD, five_blocks, nothing_was_made
from tests.integration.cli.command_runner import AS_OS_USER, CommandResult, CommandRunner
from tests.integration.cli.test_ask_inputs import with_stdin

pytestmark = pytest.mark.usefixtures("roofing")

PROMPT = "operator> "
UP, CTRL_C, CTRL_D = "\x1b[A", "\x03", "\x04"


class Terminal:
    """The prompt on a terminal of its own: type, and read what it shows."""

    def __init__(self, cli: CommandRunner, *arguments: str, columns: int = 100) -> None:
        self._master, slave = pty.openpty()
        size = struct.pack("HHHH", 40, columns, 0, 0)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, size)
        self.process = subprocess.Popen(
            cli.command("ask", "--interactive", *arguments),
            cwd=cli.project,
            env={**cli.environ, **AS_OS_USER, "TERM": "xterm"},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)
        self.shown = self.until(PROMPT)

    def until(self, mark: str, seconds: float = 120.0) -> str:
        """All that is shown up to the mark; the terminal's end will do, too."""
        output, end = "", time.monotonic() + seconds
        while mark not in output:
            assert time.monotonic() < end, f"{mark!r} was not shown:\n{output}"
            if select.select([self._master], [], [], 1.0)[0]:
                try:
                    output += os.read(self._master, 65536).decode(errors="replace")
                except OSError:
                    break  # Linux says EIO when the last writer is gone
        return output.replace("\r\n", "\n")

    def type(self, keys: str, mark: str = PROMPT) -> str:
        os.write(self._master, keys.encode())
        return self.until(mark)

    def interrupt(self) -> str:
        """Ctrl-C, again when it fell into the moment in which a line is drawn: readline heeds it later."""
        while True:
            os.write(self._master, CTRL_C.encode())
            with suppress(AssertionError):
                return self.until(PROMPT, seconds=2.0)

    def say(self, line: str) -> str:
        """Type a line, and give what is shown up to the next prompt."""
        return self.type(f"{line}\n")

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(120)
        os.close(self._master)


@contextmanager
def at_the_prompt(cli: CommandRunner, *arguments: str, columns: int = 100) -> Iterator[Terminal]:
    terminal = Terminal(cli, *arguments, columns=columns)
    try:
        yield terminal
    finally:
        terminal.close()


def test_a_person_talks_from_looking_to_doing_and_leaves(cli: CommandRunner) -> None:
    with at_the_prompt(cli) as terminal:
        assert "Status: analyzed" in terminal.say("system status")
        assert "Mode: analyze" in terminal.say(":mode")
        assert "Mode set to: execute" in terminal.say(":mode execute")
        shown = terminal.say(NEW_LEAD)
        assert "\x1b[1m[RESULT]\x1b[0m\nStatus: succeeded" in shown
        assert "1. leads.create: completed (T1)" in terminal.say(":receipts")
        plan = terminal.say(":plan")
        assert "verify: SELECT" in plan
        assert "Nothing has been done yet" not in plan
        assert ":approve " in terminal.say(":help")
        terminal.type(":quit\n", mark="never shown")
        assert terminal.process.wait(120) == 0


@pytest.mark.soak
def test_a_yes_is_for_the_next_plan_and_no_other_and_a_command_may_be_pasted(
    cli: CommandRunner,
) -> None:
    with at_the_prompt(cli, "-M", "execute") as terminal:
        shown = terminal.say(NEW_LEAD)
        command = shown.partition("Undo leads.create: ")[2].splitlines()[0]
        assert command.startswith("podium undo ")
        assert "leads.archive: completed" in terminal.say(command)
        assert "Approval flag: true" in terminal.say(":approve")
        still = terminal.say("please bake a cake")
        assert "there was no plan to approve; :approve still applies to the next one" in still
        approved = terminal.say("create a quote for lead_123")
        assert f"Approved by: {pwd.getpwuid(os.getuid()).pw_name}" in approved
        assert "Status: awaiting_approval" in terminal.say("create a quote for lead_123")
        assert "Mode set to: plan" in terminal.say(":mode plan")
        terminal.say(":approve")
        assert (
            "the approval was used for this plan, but mode plan executes nothing"
            in terminal.say("create a quote for lead_123")
        )
        terminal.say(":mode execute")
        assert "Status: awaiting_approval" in terminal.say("create a quote for lead_123")
        assert "enter APPROVE: apr_1" in terminal.say(":approve apr_1")


def test_what_is_known_is_kept_between_messages_and_faults_do_not_end_it(
    cli: CommandRunner,
) -> None:
    (cli.project / "known.json").write_text('{"quote_id": "q7", "packet": {"a": [1]}}')
    with at_the_prompt(cli, "--context", "quote_id=q1") as terminal:
        assert "there is no plan yet" in terminal.say(":plan")
        assert "quote.finalize (T2) quote_id=q1" in terminal.say("finalize the quote")
        assert "Context: quote_id=q2" in terminal.say(":context quote_id=q2")
        assert "quote.finalize (T2) quote_id=q2" in terminal.say("finalize the quote")
        assert "Context: quote_id=q7" in terminal.say(":context file known.json")
        assert "packet: a=1" in terminal.say(":context")
        assert "Context: empty" in terminal.say(":context clear")
        assert "Provide missing: quote_id" in terminal.say("finalize the quote")
        assert "unknown command :dance; see :help" in terminal.say(":dance")
        assert "unknown mode 'destroy'" in terminal.say(":mode destroy")
        assert "is not NAME=VALUE" in terminal.say(":context nonsense")
        assert "cannot read the context file" in terminal.say(":context file nowhere.json")
        assert "nothing has run yet" in terminal.say(":receipts")
        assert "no run 'abcd'" in terminal.say(":receipts abcd")
        assert "no approval" in terminal.say("APPROVE: apr_0123")
        assert "close its quotes" in terminal.say("podium show 'abc")
        assert "only these commands work at the prompt" in terminal.say("podium worker")
        assert "Status: analyzed" in terminal.say("system status")
    assert nothing_was_made(cli)


@pytest.mark.soak
def test_keys_do_what_they_do_in_a_shell(cli: CommandRunner) -> None:
    with at_the_prompt(cli) as terminal:
        terminal.type(":mo\t", mark=":mode ")
        terminal.type("ex\t", mark="execute ")
        assert "Mode set to: execute" in terminal.say("")
        terminal.type("tell me of leads.li\t", mark="leads.list_by_stage ")
        terminal.interrupt()
        terminal.type("half a line", mark="half a line")
        terminal.interrupt()
        assert "Mode: execute" in terminal.say(":mode")
        terminal.type(UP, mark=":mode")
        assert "Mode: execute" in terminal.say("")
        terminal.type(CTRL_D, mark="never shown")
        assert terminal.process.wait(120) == 0
    with at_the_prompt(cli) as terminal:
        terminal.type(UP, mark=":mode")
        assert "Mode: analyze" in terminal.say("")


def test_the_history_is_the_owners_and_has_no_secrets(cli: CommandRunner) -> None:
    secret = "sk-proj-" + "a1B2c3D4" * 6
    with at_the_prompt(cli) as terminal:
        terminal.say(f":context key={secret}")
        assert "Traceback" not in terminal.type(CTRL_D, mark="never shown")
        terminal.process.wait(120)
    (file,) = cli.home.rglob("operator_history")
    assert file.stat().st_mode & 0o077 == 0
    assert ":context key=" in file.read_text()
    assert secret not in file.read_text()


@pytest.mark.soak
def test_long_lines_are_folded_and_commands_are_not(cli: CommandRunner) -> None:
    with at_the_prompt(cli, columns=60) as terminal:
        shown = terminal.say(NEW_LEAD)
    head, _, actions = shown.partition("[NEXT ACTIONS]")
    lines = [line for line in head.split("\n")[1:] if "sha256:" not in line]
    assert all(len(line) <= 60 for line in lines), head
    assert "suburb=Clayton" in head
    assert f"podium ask -m '{NEW_LEAD}' -M execute\n" in actions


def test_lines_may_be_piped(cli: CommandRunner) -> None:
    output = with_stdin(cli, b"system status\n:mode plan\n\nbad \xff\n:quit\nnever", "ask", "-i")
    assert output.code == 0
    assert PROMPT not in output.out
    assert output.out.count("[INTENT]") == 2
    assert "control character" in output.out
    assert "never" not in output.out
    assert "\x1b" not in output.out


def test_a_line_without_an_end_is_not_kept_whole(cli: CommandRunner) -> None:
    result = cli.run("ask", "-i", stdin=b"x" * 3_000_000 + b"\nsystem status\n")
    assert "the message has 100000 characters" in result.out
    assert "Status: analyzed" in result.out


@pytest.mark.parametrize(
    "arguments", [("-M", "destroy"), ("--context", "x"), ("--context-file", "nowhere")]
)
def test_it_does_not_begin_with_what_cannot_be_read(
    cli: CommandRunner, arguments: tuple[str, ...]
) -> None:
    result: CommandResult = cli.run("ask", "--interactive", *arguments)
    assert result.code == 4
    five_blocks(result)
