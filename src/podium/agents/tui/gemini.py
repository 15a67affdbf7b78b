"""Gemini CLI on a terminal.

It is set up as the headless one: its folder counts as untrusted, every tool is asked for by the hook, and rules leave nothing
that it would ask a person. What is different stands here.
"""

from __future__ import annotations

import json
import re
import shlex
import uuid
from pathlib import Path

from podium.agents.about import ABOUT
from podium.agents.confined import Needs
from podium.agents.headless.gemini.layout import (
    CONFIG,
    CONVERSATIONS,
    EXTENSION,
    SLUG,
    allowing_rules,
    environment_for,
    hooks_for,
    settings_for,
)
from podium.agents.headless.gemini.login import logins_in, selected_login
from podium.agents.headless.gemini.program import command_of, own_options
from podium.agents.headless.gemini.prompt import prompt_for
from podium.agents.headless.gemini.tools import FILES, translate
from podium.agents.headless.home import Folders, copy_login
from podium.agents.tui.adapting import Launch, Place, Status
from podium.agents.tui.capturing import Screen
from podium.agents.tui.gemini_screen import RESUMED, composer_on, is_long, question_on, status_on
from podium.agents.tui.gemini_written import ENDED, GeminiWritten, has_begun
from podium.agents.tui.seeing import Composer, Manner, Patience
from podium.domain.errors import BadInput
from podium.domain.model import Json
from podium.ports import Translate

_HOOK_SECONDS = 10

_COMMAND = re.compile(r"/(?![/*])")
_EATS_ENTER = re.compile(r"(\\|@\S*)\Z")
"""Right behind a backslash Enter is a newline, and behind a name with an `@` it chooses a file."""

_UI: dict[str, Json] = {
    "hideBanner": True,
    "hideTips": True,
    "showShortcutsHint": False,
    "showSpinner": False,
    "useAlternateBuffer": False,
    "autoThemeSwitching": False,
    # Otherwise it asks a model that is too busy again at once, twenty times a second and without an end. This way it asks
    # whoever sits before it.
    "errorVerbosity": "full",
}


class GeminiTui:
    """Knows how Gemini CLI starts, looks, writes and stops."""

    kind = "gemini"
    manner: Manner = "paste"
    # For 40 ms after it has seen a paste it takes Enter for a newline, and for longer on a busy machine; that is seen. Two
    # Enters that it reads at once both send what stands there, so that without such a sign one is not pressed again soon.
    patience = Patience(
        settle_seconds=0.25, paint_seconds=60.0, enter_seconds=30.0, longest_paste_bytes=262_144
    )
    interrupt_keys = ("Escape",)
    translate: Translate | None = staticmethod(translate)

    def launch(self, place: Place, session: str | None) -> Launch:
        home = Folders(place.home, place.temporary)
        _lay_out(home, place)
        resumed = session is not None and has_begun(place.home, session)
        # One that has nothing in it can neither be resumed nor begun again by its name.
        named = session if session is not None and resumed else str(uuid.uuid4())
        options = place.options
        return Launch(
            argv=(
                *command_of(options),
                *("--approval-mode", "default"),
                *(("-m", options.model) if options.model else ()),
                *("--include-directories", str(_messages(place))),
                *(("--resume" if resumed else "--session-id"), named),
            ),
            env={**environment_for(options, home, {}), **_titled(place, resumed)},
            session=named,
            needs=Needs(
                writable=home.folders,
                hosts=ABOUT["gemini"].hosts,
                base_url=options.base_url,
                command=options.command or ABOUT["gemini"].program,
            ),
        )

    def fitted(self, words: str, place: Place) -> str:
        """The words as it has to be given them, so that it takes none of them for a command."""
        said = prompt_for(place.options.name, words.strip(), str(place.cwd)).decode().strip()
        begun = f"Message:\n{said}" if _COMMAND.match(said) else said
        # A blank keeps the Enter that follows from being something else; it takes it off again.
        return f"{begun} " if _EATS_ENTER.search(begun) and not is_long(begun) else begun

    def composer(self, screen: Screen, words: str) -> Composer:
        return composer_on(screen, words)

    def status(self, screen: Screen) -> Status:
        return status_on(screen)

    def question(self, screen: Screen) -> str:
        return question_on(screen)

    def written(self, place: Place, session: str) -> GeminiWritten:
        return GeminiWritten(place.home)


def _lay_out(home: Folders, place: Place) -> None:
    # A model that repeats itself it would stop in the middle of a table, and ask a person about it.
    own = own_options(place.options).model_copy(
        update={} if "stop_loops" in place.options.options else {"stop_loops": False}
    )
    if not own.hands:
        raise BadInput(
            f"agent {place.options.name!r}: on a terminal it cannot be without hands; make it headless"
        )
    home.clear(CONVERSATIONS)
    logins = logins_in(place.user_home, place.options.env)
    copied = [login.target for login in logins if copy_login(login, home.path) is not None]
    selected = selected_login(place.options.name, place.options.env, copied)
    home.write_json(f"{CONFIG}/settings.json", {**settings_for(own, selected), "ui": _UI})
    home.write(f"{CONFIG}/policies/podium.toml", allowing_rules(FILES))
    home.write_json(f"{CONFIG}/projects.json", {"projects": {str(place.cwd.resolve()): SLUG}})
    home.write_json(f"{EXTENSION}/gemini-extension.json", {"name": "podium", "version": "1.0.0"})
    home.write_json(f"{EXTENSION}/hooks/hooks.json", _hooks(place.hook_command))
    home.make(CONVERSATIONS)
    _messages(place).mkdir(mode=0o700, exist_ok=True)


def _messages(place: Place) -> Path:
    """Where messages lie that are handed over as files: it reads none outside of what it is told of."""
    return place.home.with_name("messages")


def _titled(place: Place, resumed: bool) -> dict[str, str]:
    """What its title says in brackets, which is its folder by itself."""
    return {"CLI_TITLE": f"{RESUMED}{place.cwd.name}"} if resumed else {}


def _hooks(command: tuple[str, ...]) -> Json:
    """Ask before every tool; and when a turn is over, say so in the transcript, which itself does not tell."""
    asked = hooks_for(command, {})
    return {
        "hooks": {
            **asked["hooks"],
            "AfterAgent": [{"hooks": [_hook("podium-ended", _NOTE_END)]}],
            "SessionStart": [{"hooks": [_hook("podium-started", _GREETING)]}],
        }
    }


def _hook(name: str, command: str) -> Json:
    return {"name": name, "type": "command", "command": command, "timeout": _HOOK_SECONDS * 1000}


# A person who clears everything would leave a screen like that of one that just starts.
_GREETING = f"printf '%s' {shlex.quote(json.dumps({'systemMessage': 'Podium is on the line.'}))}"

# The transcript is named in what the hook is told. Records that it does not know the CLI itself passes over. No two are the
# same, so that each can be found again.
_NOTE_END = (
    r"""said=$(cat); file=${said#*'"transcript_path":"'}; file=${file%%'","cwd":'*}; """
    r"""file=${file//'\"'/'"'}; file=${file//'\\'/'\'}; """
    r"""if [ -f "$file" ]; then printf '{"podium": "%s", "number": "%s-%s-%s"}\n' """
    rf"""{ENDED} $$ $RANDOM $RANDOM >>"$file"; fi"""
)
