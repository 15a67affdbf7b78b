"""Claude Code on a terminal: its start, its screen and its transcript.

It is set up as the headless one: nothing of the person or the workspace configures it, and every tool is asked for by the
hook. In its mode `dontAsk` what no hook has allowed does not run and nobody is asked, so that a hook which fails closes
the door.
"""

from __future__ import annotations

import glob
import json
import re
import shlex
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

from podium.agents.headless.claude.agent import CONVERSATIONS
from podium.agents.headless.claude.command import (
    ALONE,
    CONFIG,
    WORKING_TOOLS,
    ClaudeSettings,
    environment_for,
    has_login_in,
    login_in,
    model_switches,
    translate,
)
from podium.agents.headless.claude.session import MADE_UP_MODEL, tool_results
from podium.agents.headless.home import HomeFolders, copy_login
from podium.agents.kinds import ABOUT
from podium.agents.outcome import plain_line
from podium.agents.program import Needs
from podium.agents.tui.adapter import Launch, ProgramContext, Status, TranscriptEntry
from podium.agents.tui.jsonl_tail import JsonlTail, NewestFile, Record
from podium.agents.tui.screen import (
    MEASURED_OTHERWISE,
    Composer,
    Manner,
    Patience,
    TerminalScreen,
    surely_drawn,
)
from podium.core.errors import BadInput
from podium.core.model import Json
from podium.ports import Translate

_PROMPT = "❯"
_RULE = "─" * 10
_WORKS = re.compile(r"[·✢✳✶✻✽*] .*(…|Retrying in )")
"""Above the composer, from the first column on. When its turn is over the same sign stands there with other words."""
_INTERRUPTIBLE = "esc to interrupt"
_HINT = re.compile(r'Try "|Press up to edit queued messages')
"""Shown in an empty composer, behind the cursor."""
_FIRST_COLUMN = 2
_STAND_IN = re.compile(r"\[Pasted text #\d+(?: \+(\d+) lines?)?\]")
_DIALOG = re.compile(
    r"\s*❯ +\d+\. |.*\b(Enter to (confirm|select|continue|submit)|Esc to (cancel|exit))\b",
    re.IGNORECASE,
)
_SURE_LENGTH = 60
_LINES_OF_QUESTION = 20


def composer_on(screen: TerminalScreen, text: str) -> Composer:
    region = _composer(screen)
    if region is None:
        return "unseen"
    visible = "\n".join(screen.lines[region]).removeprefix(_PROMPT).strip()
    if not visible or (_HINT.match(visible) and screen.cursor[0] == _FIRST_COLUMN):
        return "empty"
    return "ours" if _is_stand_in(visible, text) or _is_part(visible, text) else "other"


def status_on(screen: TerminalScreen) -> Status:
    region = _composer(screen)
    if region is None:
        return "asking" if any(map(_DIALOG.match, screen.lines)) else "starting"
    works = any(map(_WORKS.match, screen.lines[: region.start]))
    # It is not said while something stands in the composer, and the sign may have scrolled away.
    says_busy = any(_INTERRUPTIBLE in line for line in screen.lines[region.stop :])
    return "busy" if works or says_busy else "ready"


def question_on(screen: TerminalScreen) -> str:
    """The end of what it shows, from the line above the dialog on."""
    rules = [at for at, line in enumerate(screen.lines) if line.startswith(_RULE)]
    begin = rules[-1] + 1 if rules else 0
    lines = [line.strip() for line in screen.lines[begin:] if line.strip()]
    return plain_line(" ".join(lines[-_LINES_OF_QUESTION:]))


def _composer(screen: TerminalScreen) -> slice | None:
    """Find the lines of the input: between the last two lines that go all the way."""
    rules = [at for at, line in enumerate(screen.lines) if line.startswith(_RULE)]
    if len(rules) < 2 or not screen.lines[rules[-2] + 1].startswith(_PROMPT):
        return None
    return slice(rules[-2] + 1, rules[-1])


def _is_stand_in(visible: str, text: str) -> bool:
    """Return whether it is what a long paste is shown by, of so many lines."""
    stand_in = _STAND_IN.fullmatch(visible)
    newlines = {text.count("\n"), text.strip().count("\n")}
    return stand_in is not None and int(stand_in[1] or 0) in newlines


def _is_part(visible: str, text: str) -> bool:
    """Return whether it is this text, or what fits of it."""
    part, whole = surely_drawn(visible), surely_drawn(text)
    return len(part) >= min(len(whole), _SURE_LENGTH) and part in whole


_INTERRUPTED = "[Request interrupted by user"


def written_of(home: Path, session: str) -> JsonlTail:
    """The conversation of this name. Its file lies in a folder that is named like the workspace, more or less."""
    file = NewestFile(home, f"*/{glob.escape(session)}.jsonl", CONVERSATIONS)
    return JsonlTail(file, entries_in, lambda _: session)


def has_begun(home: Path, session: str) -> bool:
    """Return whether there is anything to continue: without a message it cannot be resumed."""
    entries, _ = written_of(home, session).since({})
    return any(entry.kind == "prompt" for entry in entries)


def entries_in(record: Record) -> list[TranscriptEntry]:
    """Return the entries of a record. Those of subagents have none."""
    if record.get("isSidechain") is True:
        return []
    kind = record.get("type")
    if kind == "user":
        return list(_of_user(record))
    if kind == "assistant":
        return list(_of_model(record))
    # Comes a little after the last words. Where the model ended without any there is no other sign.
    return (
        [TranscriptEntry("end")]
        if (kind, record.get("subtype")) == ("system", "turn_duration")
        else []
    )


def _of_user(record: Record) -> Iterator[TranscriptEntry]:
    for result in tool_results(record):
        yield TranscriptEntry("used", result.text, result.use, result.ok)
    text = "\n".join(_texts(record))
    if record.get("promptSource"):
        yield TranscriptEntry("prompt", text)
    elif text.startswith(_INTERRUPTED):
        yield TranscriptEntry("end", text.strip("[]"), ok=False)


def _of_model(record: Record) -> Iterator[TranscriptEntry]:
    message, texts = _message(record), list(_texts(record))
    if record.get("isApiErrorMessage") is True:
        yield TranscriptEntry("end", "\n".join(texts), ok=False)
    elif message.get("model") != MADE_UP_MODEL:
        yield from (TranscriptEntry("words", text) for text in texts)
        # What it thought has a record of its own, with the same reason, and comes before its words.
        if texts and message.get("stop_reason") == "end_turn":
            yield TranscriptEntry("end")


def _texts(record: Record) -> Iterator[str]:
    content = _message(record).get("content")
    if isinstance(content, str):
        yield content
    for block in content if isinstance(content, list) else ():
        text = block.get("text") if isinstance(block, dict) else None
        if isinstance(text, str):
            yield text


def _message(record: Record) -> Mapping[str, Json]:
    message = record.get("message")
    return message if isinstance(message, dict) else {}


ANSWER_SECONDS = 10
HOOK_SECONDS = 60
KEY = "ANTHROPIC_API_KEY"
_HELD_KEY = "PODIUM_MODEL_KEY"
"""Variable of the key in its place: of one that it finds under its own name it asks whether it may use it."""

_LEAVES = frozenset({"exit", "quit", ":q", ":q!", ":wq", ":wq!"})
"""Messages that end it."""


class ClaudeTui:
    """Knows how Claude Code starts, looks, writes and stops."""

    kind = "claude"
    manner: Manner = "paste"
    # On a busy machine it reads late, and paints later.
    # It makes blanks of tabs, which some languages do not forgive.
    patience = Patience(
        paint_seconds=30.0, longest_paste_bytes=500_000, spoilt="\t" + MEASURED_OTHERWISE
    )
    # A message that it has not begun to answer would go back into the composer when that is empty.
    interrupt_keys = ("Space", "Escape")
    translate: Translate | None = staticmethod(translate)

    def launch(self, context: ProgramContext, session: str | None) -> Launch:
        options, home = context.options, HomeFolders(context.home, context.temporary)
        _lay_out(home, context)
        resumed = session is not None and has_begun(context.home, session)
        named = session if session is not None and resumed else str(uuid.uuid4())
        return Launch(
            argv=(
                *(options.command or ABOUT["claude"].program),
                *("--permission-mode", "dontAsk", "--tools", ",".join(WORKING_TOOLS)),
                *ALONE,
                *("--prompt-suggestions", "false"),
                *("--settings", json.dumps(_settings(context))),
                *model_switches(options),
                *(("--resume" if resumed else "--session-id"), named),
            ),
            env=_environment(context, home),
            session=named,
            needs=Needs(
                writable=home.folders,
                hosts=ABOUT["claude"].hosts,
                base_url=options.base_url,
                command=options.command or ABOUT["claude"].program,
            ),
        )

    def fitted(self, text: str, context: ProgramContext) -> str:
        """The words as it has to be given them, so that it takes none of them for a command."""
        if text.strip().lower() in _LEAVES:
            return f"Message: {text.strip()}"
        # The one would be a command, the other one of the shell's, which no hook is asked for.
        begun = f"\n{text}" if text.startswith(("/", "!")) else text
        # Right behind a backslash Enter is a newline. A blank at the end is taken off.
        return f"{begun} " if begun.endswith("\\") else begun

    def composer(self, screen: TerminalScreen, text: str) -> Composer:
        return composer_on(screen, text)

    def status(self, screen: TerminalScreen) -> Status:
        return status_on(screen)

    def question(self, screen: TerminalScreen) -> str:
        return question_on(screen)

    def written(self, context: ProgramContext, session: str) -> JsonlTail:
        return written_of(context.home, session)


def _lay_out(home: HomeFolders, context: ProgramContext) -> None:
    """So that no dialog opens: it was set up before, and the workspace is trusted, of which nothing is read anyway."""
    if not ClaudeSettings.of(context.options).hands:
        raise BadInput(
            f"agent {context.options.name!r}: `hands: false` is not possible on a terminal; run the agent headless"
        )
    home.clear(CONVERSATIONS)
    if not has_login_in(context.options.env):
        copy_login(login_in(context.user_home / CONFIG), home.path)
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    folders = {str(context.cwd), str(context.cwd.resolve())}
    settings = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "projects": dict.fromkeys(folders, trusted),
    }
    home.write_json(f"{CONFIG}/.claude.json", settings)
    named = re.sub(r"[^A-Za-z0-9]", "-", str(context.cwd.resolve()))
    home.make(f"{CONVERSATIONS}/{named}")


def _settings(context: ProgramContext) -> Json:
    hook = {
        "type": "command",
        # Without an allow nothing runs in its mode, so a no need not be an exit code.
        "command": shlex.join((*context.hook_command, "deny-as-json")),
        "timeout": HOOK_SECONDS,
    }
    settings: dict[str, Json] = {"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [hook]}]}}
    if KEY in context.options.env:
        settings["apiKeyHelper"] = f"printenv {_HELD_KEY}"
    return settings


def _environment(context: ProgramContext, home: HomeFolders) -> dict[str, str]:
    env = {
        **environment_for(context.options, home),
        "PODIUM_DOOR_DEADLINE": str(ANSWER_SECONDS),
    }
    # With it a model that is too busy is asked again and again, without an end.
    env.pop("CLAUDE_CODE_RETRY_WATCHDOG", None)
    if KEY in env:
        env[_HELD_KEY] = env.pop(KEY)
    return env
