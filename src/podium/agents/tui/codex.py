"""Codex on a terminal: its start, its screen and its transcript.

• Working (3s • esc to interrupt)

› what is typed
  and goes on

  GPT-5.5 default · /home/me/project
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from podium.agents.headless.codex import home as codex_home
from podium.agents.headless.codex.home import CONVERSATIONS, refuse_foreign_git, trusting_hook
from podium.agents.headless.codex.tools import Judged
from podium.agents.headless.home import HomeFolders, copy_login
from podium.agents.kinds import ABOUT
from podium.agents.outcome import plain_line
from podium.agents.private_files import real_paths
from podium.agents.program import Needs, record_of
from podium.agents.tui.adapter import Launch, ProgramContext, Status, TranscriptEntry, Written
from podium.agents.tui.jsonl_tail import JsonlTail, NewestFile, Record, opened
from podium.agents.tui.screen import Composer, Manner, Patience, TerminalScreen
from podium.core.errors import BadInput
from podium.ports import Translate

STAND_IN_BEYOND_CHARACTERS = 1000
"""A longer paste is shown by a stand-in, and taken as it is: none of it is a command then."""

_PROMPT_SIGN, _SHELL_SIGN, _INDENT = "›", "!", "  "
_SIGN_COLUMNS = 2
_PLACEHOLDER = "Ask Codex to do anything"
_STAND_IN = re.compile(r"\[Pasted Content (\d+) chars\]")
_WORKING = re.compile(r"(\S.* )?\((\d+[hm] )*\d+s • esc to interrupt\)")
_OVER = re.compile(r"  Worked for |■ ")
_OPTION = re.compile(r"\s*[›>] \d+\. ")
_HINT = re.compile(r"\s*(press |↑|enter\b|esc\b|tab\b|ctrl\b|space\b)", re.IGNORECASE)
_COMPLETION = "esc close"
_SURE_CHARACTERS = 60
_MAX_VISIBLE_LINES = 8
_QUESTION_LINES = 12
_MAX_QUESTION = 400


@dataclass(frozen=True)
class _Input:
    """The composer, found on a screen."""

    sign: str
    text: str
    above: Sequence[str]


def composer(screen: TerminalScreen, text: str) -> Composer:
    """Read the composer. It is not to be seen while codex works: text that it is given then ends its answer."""
    input_box = _input(screen.lines)
    if input_box is None or _works(input_box.above):
        return "unseen"
    if input_box.sign == _SHELL_SIGN or any(_COMPLETION in line for line in input_box.above[-2:]):
        return "other"
    if input_box.text in ("", _PLACEHOLDER) and screen.cursor[0] == _SIGN_COLUMNS:
        return "empty"
    return "ours" if _shows(input_box.text, text) else "other"


def status(screen: TerminalScreen) -> Status:
    """Read codex's status. While it starts it shows a composer already, but not yet what stands below it."""
    input_box = _input(screen.lines)
    if input_box is not None:
        return "busy" if _works(input_box.above) else "ready"
    if any(_OPTION.match(line) for line in screen.lines):
        return "asking"
    return "busy" if _works(screen.lines) else "starting"


def question(screen: TerminalScreen) -> str:
    """The dialog in one line, with what may be answered."""
    options = [at for at, line in enumerate(screen.lines) if _OPTION.match(line)]
    first = options[-1] if options else len(screen.lines)
    lines = [line.strip() for line in screen.lines[max(first - _QUESTION_LINES, 0) :]]
    return plain_line(" ".join(line for line in lines if line), _MAX_QUESTION)


def as_paste(text: str) -> str:
    """The words as codex takes them for nothing but words.

    What begins with `/` or `!` would be a command, a name at the end after `@` or `$` would be completed by Enter, a single
    path may be an image, and of many short lines a low terminal shows too few. Blanks behind make it a long paste; codex
    drops them.
    """
    is_command = text.lstrip().startswith(("/", "!"))
    is_completed = re.search(r"[@$]\S*\Z", text) is not None
    is_tall = text.count("\n") > _MAX_VISIBLE_LINES
    if is_command or is_completed or is_tall or len(text.split()) == 1:
        return text.ljust(STAND_IN_BEYOND_CHARACTERS + 1)
    return text


def _input(lines: Sequence[str]) -> _Input | None:
    """The composer above the last line, which is neither its own nor the hint below a dialog."""
    if not lines or not lines[-1].startswith(_INDENT) or _HINT.match(lines[-1]):
        return None
    for at in range(len(lines) - 2, -1, -1):
        line = lines[at]
        if line[:1] in (_PROMPT_SIGN, _SHELL_SIGN) and line[1:2] in ("", " "):
            inner = (line[_SIGN_COLUMNS:], *(row[len(_INDENT) :] for row in lines[at + 1 : -1]))
            return _Input(line[0], "\n".join(inner).strip(), lines[:at])
        if line and not line.startswith(_INDENT):
            return None
    return None


def _works(above: Sequence[str]) -> bool:
    """Return whether the last lines say that it works: an answer may quote that line, but then its end is shown below."""
    for line in reversed(above):
        if _OVER.match(line):
            return False
        if _WORKING.match(line):
            return True
    return False


def _shows(visible: str, text: str) -> bool:
    """Return whether this is the text: its stand-in, or all of it, or its end when it is too tall."""
    stand_in = _STAND_IN.fullmatch(visible)
    if stand_in:
        return int(stand_in[1]) == len(text)
    part, whole = _alphanumerics(visible), _alphanumerics(text)
    return part == whole or (len(part) >= _SURE_CHARACTERS and whole.endswith(part))


def _alphanumerics(text: str) -> str:
    """Return what of a text comes through a terminal as it was: lines are broken, tabs and some signs are drawn otherwise."""
    return "".join(filter(str.isalnum, text))


_FILES = "*/*/*/rollout-*.jsonl"
_SESSION = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_MAX_BEGINNING_BYTES = 4_000_000
_USES = ("CommandExecution", "FileChange", "McpToolCall", "DynamicToolCall", "ImageView")
"""Items that pass its hook."""


@dataclass(frozen=True)
class _Main(NewestFile):
    """The file of the conversation that is held on the terminal. Agents inside the agent have files of their own."""

    _is_main_cache: dict[Path, bool] = field(default_factory=dict)

    def find(self) -> Path | None:
        return next((file for file in self.newest_first() if self._is_main(file)), None)

    def _is_main(self, file: Path) -> bool:
        if file not in self._is_main_cache and (about := _about(self.home, file)):
            within = isinstance(about.get("source"), dict)
            self._is_main_cache[file] = not within and about.get("thread_source") in (None, "user")
        return self._is_main_cache.get(file, False)


def conversation(home: Path) -> JsonlTail:
    """The conversation in this home that is held now. A person may have begun another one in it."""
    return JsonlTail(_Main(home, _FILES, CONVERSATIONS), read, session_of)


def session_of(file: Path | None) -> str:
    """The name of the conversation that is kept in this file. It is known when the first message was taken."""
    match = None if file is None else _SESSION.fullmatch(file.stem[-36:])
    return match[0] if match else ""


def has_conversation(home: Path, session: str) -> bool:
    """Return whether it can be continued. Codex ends at once when it is told to resume what it does not find."""
    if not _SESSION.fullmatch(session):
        return False
    return bool(real_paths(home, CONVERSATIONS, f"*/*/*/rollout-*{session}.jsonl"))


def read(record: Record) -> list[TranscriptEntry]:
    """Return the entries of one record."""
    payload = _fields(record.get("payload"))
    kind = payload.get("type")
    # Not the model's messages themselves: when codex shortens its memory, what it is told of it looks like an answer.
    if record.get("type") != "event_msg":
        return []
    if kind == "item_completed":
        return _done(_fields(payload.get("item")))
    if kind == "task_complete":
        return [_end(payload.get("error"))]
    if kind == "turn_aborted":
        return [
            TranscriptEntry(
                "end", f"it was {_string(payload.get('reason')) or 'interrupted'}", ok=False
            )
        ]
    return []


def _end(error: Any) -> TranscriptEntry:
    if error is None:
        return TranscriptEntry("end")
    return TranscriptEntry(
        "end", _string(_fields(error).get("message")) or "it gives no reason", ok=False
    )


def _done(item: dict[str, Any]) -> list[TranscriptEntry]:
    if item.get("type") == "UserMessage":
        return [TranscriptEntry("prompt", _text(item))]
    if item.get("type") == "AgentMessage":
        return [TranscriptEntry("words", _text(item))]
    if item.get("type") not in _USES:
        return []
    use, problem = _string(item.get("id")), _failure(item)
    return [
        TranscriptEntry("used", problem, use=name, ok=not problem)
        for name in (use, *_parts(use, item))
    ]


def _failure(item: dict[str, Any]) -> str:
    """Return the failure; empty when it succeeded."""
    status = item.get("status")
    if status in (None, "completed"):
        return ""
    code = item.get("exit_code")
    return f"exit code {code}" if isinstance(code, int) and code else _string(status) or "failed"


def _parts(use: str, item: dict[str, Any]) -> list[str]:
    """The names under which the hook asked for the changes of one patch: one that moves a file is three."""
    changes = _fields(item.get("changes"))
    moved = sum(bool(_fields(change).get("move_path")) for change in changes.values())
    return [f"{use}#{number}" for number in range(len(changes) + 2 * moved)]


def _text(message: dict[str, Any]) -> str:
    content = message.get("content")
    parts = [_fields(part).get("text") for part in content] if isinstance(content, list) else []
    return "".join(part for part in parts if isinstance(part, str))


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _fields(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _about(home: Path, file: Path) -> dict[str, Any]:
    """Read the first record of a conversation. Nothing while that is not there."""
    with opened(home, file) as content:
        line = b"" if content is None else content.readline(_MAX_BEGINNING_BYTES)
    record = record_of(line) if line.endswith(b"\n") else {}
    return _fields(record.get("payload")) if record.get("type") == "session_meta" else {}


_QUIET: dict[str, Any] = {
    "animations": False,
    "auto_recap": False,
    "notifications": False,
    "show_server_version_notice": False,
    "show_tooltips": False,
}
_NOTICE: dict[str, Any] = {
    "hide_full_access_warning": True,
    "hide_rate_limit_model_nudge": True,
    "hide_world_writable_warning": True,
    # It recommends each of these in a dialog to whoever uses the other, until that is said to have been seen.
    "model_migrations": {
        "gpt-5.5": "gpt-6-sol",
        "gpt-5.6-luna": "gpt-6-luna",
        "gpt-5.6-sol": "gpt-6-sol",
        "gpt-5.6-terra": "gpt-6-sol",
    },
}


class CodexTui:
    """Knows codex's terminal program, as of the version that Podium was tried with."""

    kind = "codex"
    manner: Manner = "paste"
    interrupt_keys = ("Escape",)
    # It takes far more. What it gets as a file it has to read by a tool, which may be denied.
    patience = Patience(longest_paste_bytes=524_288)

    @property
    def translate(self) -> Translate | None:
        return Judged().translate

    def launch(self, context: ProgramContext, session: str | None) -> Launch:
        own = codex_home.codex_options(context.options)
        if not own.hands:
            raise BadInput(
                f"agent {context.options.name!r}: `hands: false` is not possible on a terminal; run the agent headless"
            )
        refuse_foreign_git(context.options.name, context.cwd)
        home = HomeFolders(context.home, context.temporary)
        _lay_out(home, context, own.sandbox)
        # It names a conversation itself, with the first message: killed at that, nobody was told the name.
        resumed = session or conversation(context.home).session
        if not has_conversation(context.home, resumed):
            resumed = ""
        command = context.options.command or ABOUT["codex"].program
        resume = ("resume", resumed) if resumed else ()
        return Launch(
            argv=(*command, "--no-daemon", "--no-alt-screen", *resume),
            env=_environment(home, context),
            session=resumed,
            needs=Needs(
                writable=home.folders,
                hosts=ABOUT["codex"].hosts,
                base_url=context.options.base_url,
                command=command,
            ),
        )

    def fitted(self, text: str, context: ProgramContext) -> str:
        """The words as codex has to be given them, so that it takes none for a command."""
        return as_paste(text)

    def composer(self, screen: TerminalScreen, text: str) -> Composer:
        return composer(screen, text)

    def status(self, screen: TerminalScreen) -> Status:
        return status(screen)

    def question(self, screen: TerminalScreen) -> str:
        return question(screen)

    def written(self, context: ProgramContext, session: str) -> Written | None:
        return conversation(context.home)


def _lay_out(home: HomeFolders, context: ProgramContext, wished: codex_home.Sandbox | None) -> None:
    person = context.user_home / codex_home.CODEX_HOME
    login = codex_home.login_in(person)
    # Codex renews its login: one that is there is newer than the person's own.
    home.clear(codex_home.CONVERSATIONS, login.target)
    if not (home.path / login.target).exists():
        copy_login(login, home.path)
    hook = codex_home.hook_for(context.hook_command)
    hooks = codex_home.lay_hook(home, hook)
    sandbox = "danger-full-access" if context.confined else wished or "workspace-write"
    settings = {
        **codex_home.settings_for(context.options, context.cwd, sandbox, person),
        "approval_policy": "never",  # it would ask in a dialog
        "projects": codex_home.trust_in(
            context.cwd, "untrusted" if _has_settings(context.cwd) else "trusted"
        ),
        "hooks": trusting_hook(hooks, codex_home.EVERY_TOOL, hook),
        "history": {"persistence": "none"},
        "tools": {
            "experimental_request_user_input": {"enabled": False}
        },  # nobody is there to answer
        "tui": _QUIET,
        "notice": _NOTICE,
    }
    home.write(f"{codex_home.CODEX_HOME}/config.toml", codex_home.toml(settings))


def _environment(home: HomeFolders, context: ProgramContext) -> dict[str, str]:
    own = {"CODEX_HOME": str(home.path / codex_home.CODEX_HOME), "RUST_LOG": "error"}
    return {**context.options.env, **home.env, **own}


def _has_settings(cwd: Path) -> bool:
    """Return whether the project brings settings for codex, which may start programs.

    On a terminal there are two states: trusted, where they count, and untrusted, where codex asks a person at each start.
    So a project without any is trusted, and with some a person is asked.
    """
    folders = [cwd.resolve(), *cwd.resolve().parents]
    root = next((at for at, folder in enumerate(folders) if os.path.lexists(folder / ".git")), 0)
    return any(_holds_something(folder / ".codex") for folder in folders[: root + 1])


def _holds_something(folder: Path) -> bool:
    try:
        with os.scandir(folder) as entries:
            return any(entries)
    except FileNotFoundError:
        return False
    except OSError:
        return True
