"""Claude Code on a terminal.

It is set up as the headless one: nothing of the person or the workspace configures it, and every tool is asked for by the
hook. In its mode `dontAsk` what no hook has allowed does not run and nobody is asked, so that a hook which fails closes
the door.
"""

from __future__ import annotations

import json
import re
import shlex
import uuid

from podium.agents.about import ABOUT
from podium.agents.confined import Needs
from podium.agents.headless.claude.agent import CONVERSATIONS
from podium.agents.headless.claude.command import (
    ALONE,
    CONFIG,
    ClaudeSettings,
    environment_for,
    has_login_in,
    login_in,
    model_switches,
)
from podium.agents.headless.claude.tools import WORKING_TOOLS, translate
from podium.agents.headless.home import Folders, copy_login
from podium.agents.tui.adapting import Launch, Place, Status
from podium.agents.tui.capturing import Screen
from podium.agents.tui.claude_screen import composer_on, question_on, status_on
from podium.agents.tui.claude_written import has_begun, written_of
from podium.agents.tui.drawn import MEASURED_OTHERWISE
from podium.agents.tui.jsonl_tail import JsonlTail
from podium.agents.tui.seeing import Composer, Manner, Patience
from podium.domain.errors import BadInput
from podium.domain.model import Json
from podium.ports import Translate

ANSWER_SECONDS = 10
HOOK_SECONDS = 60
KEY = "ANTHROPIC_API_KEY"
_HELD_KEY = "PODIUM_MODEL_KEY"
"""Where the key stands instead: of one that it finds under its own name it asks whether it may use it."""

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

    def launch(self, place: Place, session: str | None) -> Launch:
        options, home = place.options, Folders(place.home, place.temporary)
        _lay_out(home, place)
        resumed = session is not None and has_begun(place.home, session)
        named = session if session is not None and resumed else str(uuid.uuid4())
        return Launch(
            argv=(
                *(options.command or ABOUT["claude"].program),
                *("--permission-mode", "dontAsk", "--tools", ",".join(WORKING_TOOLS)),
                *ALONE,
                *("--prompt-suggestions", "false"),
                *("--settings", json.dumps(_settings(place))),
                *model_switches(options),
                *(("--resume" if resumed else "--session-id"), named),
            ),
            env=_environment(place, home),
            session=named,
            needs=Needs(
                writable=home.folders,
                hosts=ABOUT["claude"].hosts,
                base_url=options.base_url,
                command=options.command or ABOUT["claude"].program,
            ),
        )

    def fitted(self, words: str, place: Place) -> str:
        """The words as it has to be given them, so that it takes none of them for a command."""
        if words.strip().lower() in _LEAVES:
            return f"Message: {words.strip()}"
        # The one would be a command, the other one of the shell's, which no hook is asked for.
        begun = f"\n{words}" if words.startswith(("/", "!")) else words
        # Right behind a backslash Enter is a newline. A blank at the end is taken off.
        return f"{begun} " if begun.endswith("\\") else begun

    def composer(self, screen: Screen, words: str) -> Composer:
        return composer_on(screen, words)

    def status(self, screen: Screen) -> Status:
        return status_on(screen)

    def question(self, screen: Screen) -> str:
        return question_on(screen)

    def written(self, place: Place, session: str) -> JsonlTail:
        return written_of(place.home, session)


def _lay_out(home: Folders, place: Place) -> None:
    """So that no dialog opens: it was set up before, and the workspace is trusted, of which nothing is read anyway."""
    if not ClaudeSettings.of(place.options).hands:
        raise BadInput(
            f"agent {place.options.name!r}: on a terminal it cannot be without hands; make it headless"
        )
    home.clear(CONVERSATIONS)
    if not has_login_in(place.options.env):
        copy_login(login_in(place.user_home / CONFIG), home.path)
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    folders = {str(place.cwd), str(place.cwd.resolve())}
    known = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "projects": dict.fromkeys(folders, trusted),
    }
    home.write_json(f"{CONFIG}/.claude.json", known)
    named = re.sub(r"[^A-Za-z0-9]", "-", str(place.cwd.resolve()))
    home.make(f"{CONVERSATIONS}/{named}")


def _settings(place: Place) -> Json:
    hook = {
        "type": "command",
        # Without an allow nothing runs in its mode, so a no need not be an exit code.
        "command": shlex.join((*place.hook_command, "deny-as-json")),
        "timeout": HOOK_SECONDS,
    }
    settings: dict[str, Json] = {"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [hook]}]}}
    if KEY in place.options.env:
        settings["apiKeyHelper"] = f"printenv {_HELD_KEY}"
    return settings


def _environment(place: Place, home: Folders) -> dict[str, str]:
    env = {
        **environment_for(place.options, home),
        "PODIUM_DOOR_DEADLINE": str(ANSWER_SECONDS),
    }
    # With it a model that is too busy is asked again and again, without an end.
    env.pop("CLAUDE_CODE_RETRY_WATCHDOG", None)
    if KEY in env:
        env[_HELD_KEY] = env.pop(KEY)
    return env
