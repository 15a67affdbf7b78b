"""Gemini CLI on a terminal: its start and its screen.

It is set up as the headless one: its folder counts as untrusted, every tool is asked for by the hook, and rules leave nothing
that it would ask a person. What is different stands here.
"""

from __future__ import annotations

import json
import re
import shlex
import uuid
from itertools import pairwise
from pathlib import Path

from podium.agents.confinement import Needs
from podium.agents.headless.gemini.program import (
    CONFIG,
    CONVERSATIONS,
    EXTENSION,
    SLUG,
    allowing_rules,
    command_of,
    environment_for,
    hooks_for,
    logins_in,
    own_options,
    selected_login,
    settings_for,
)
from podium.agents.headless.gemini.tools import FILES, prompt_for, translate
from podium.agents.headless.home import Folders, copy_login
from podium.agents.kinds import ABOUT
from podium.agents.outcome import plain_line
from podium.agents.tui.adapter import Launch, ProgramContext, Status
from podium.agents.tui.gemini_transcript import ENDED, GeminiWritten, has_begun
from podium.agents.tui.screen import Composer, Manner, Patience, Screen, surely_drawn
from podium.core.errors import BadInput
from podium.core.model import Json
from podium.ports import Translate

_ASKING = "✋"
_WORKING = ("✦", "⏲")
RESUMED = "resumed: "
"""Prefix of its title when it was started in an old conversation."""
_UNTRUSTED = "ℹ This folder is untrusted"
_PROMPT = " > "
_NOTHING = "Type your message or @path/to/file"
_RULE = re.compile(r"─{20,}")
_STAND_IN = re.compile(r"\[PastedText:(\d+)(lines|chars)(?:#\d+)?\]")
"""Without its blanks."""
_MAX_LINES, _MAX_CHARACTERS = 5, 500
"""A longer text is shown by a stand-in."""
_FRAME = "│╭╮╰╯─"
_SURE_LENGTH = 60


def composer_on(screen: Screen, text: str) -> Composer:
    region = _composer(screen)
    if region is None or _only_comes_up(screen, region):
        return "unseen"
    lines = [line.removeprefix(_PROMPT) for line in screen.lines[region]]
    if [line.strip() for line in lines] == [_NOTHING]:
        return "empty"
    if not _is_beginning(surely_drawn("".join(lines)), text):
        return "other"
    return "unsent" if not lines[-1].strip() and not text.endswith("\n") else "ours"


def status_on(screen: Screen) -> Status:
    """By its title and its composer, which a question stands in the place of.

    The title alone says ready also before anything is painted and above most questions, and working above some.
    """
    region = _composer(screen)
    if screen.title.startswith(_ASKING) or _box(screen):
        return "asking"
    if screen.title.startswith(_WORKING):
        return "busy"
    return "starting" if region is None or _only_comes_up(screen, region) else "ready"


def question_on(screen: Screen) -> str:
    """Return the text of the lowest box, without its frame."""
    lines = _box(screen) or screen.lines[-15:]
    return plain_line(" ".join(line.strip(f" {_FRAME}") for line in lines))


def _composer(screen: Screen) -> slice | None:
    """Find the lines of the input: between the last two lines that go all the way and hold a prompt.

    Below may stand what an earlier painting left: it does not wipe the last lines away when a long answer shrinks.
    """
    rules = [at for at, line in enumerate(screen.lines) if _RULE.fullmatch(line)]
    if _box(screen):
        return None
    for begin, end in reversed(list(pairwise(rules))):
        if f"{screen.lines[begin + 1]} ".startswith(_PROMPT):
            return slice(begin + 1, end)
    return None


def _only_comes_up(screen: Screen, composer: slice) -> bool:
    """Return whether there is nothing above its composer yet, or only what it says before it shows an old conversation.

    It paints the composer first, takes pastes as pastes a moment later, and then says that the folder is not trusted. An
    old conversation comes even later, and with it what was pasted is gone.
    """
    above = screen.lines[: composer.start - 2]
    first = next((line for line in above if line.strip() and not _RULE.fullmatch(line)), "")
    return not first or (RESUMED in screen.title and first.startswith(_UNTRUSTED))


def _box(screen: Screen) -> tuple[str, ...]:
    """The lines of the box at the very bottom. Empty: there is none."""
    begins = [at for at, line in enumerate(screen.lines) if line.strip().startswith("╭")]
    at_bottom = bool(screen.lines) and screen.lines[-1].strip().startswith("╰")
    return screen.lines[begins[-1] :] if begins and at_bottom else ()


def _is_beginning(visible: str, text: str) -> bool:
    """Return whether what is surely shown is this text, its stand-in, or what fits of it."""
    stand_in = _STAND_IN.fullmatch(visible)
    if stand_in is not None and is_long(text):
        lines = text.count("\n") + 1
        return lines == int(stand_in[1]) if stand_in[2] == "lines" else lines <= _MAX_LINES
    whole = surely_drawn(text)
    return len(visible) >= min(len(whole), _SURE_LENGTH) and visible in whole


def is_long(text: str) -> bool:
    """Return whether it shows a stand-in for the text, and takes it as it is."""
    characters = len(text.encode("utf-16-le", errors="replace")) // 2
    return text.count("\n") >= _MAX_LINES or characters > _MAX_CHARACTERS


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

    def launch(self, context: ProgramContext, session: str | None) -> Launch:
        home = Folders(context.home, context.temporary)
        _lay_out(home, context)
        resumed = session is not None and has_begun(context.home, session)
        # One that has nothing in it can neither be resumed nor begun again by its name.
        named = session if session is not None and resumed else str(uuid.uuid4())
        options = context.options
        return Launch(
            argv=(
                *command_of(options),
                *("--approval-mode", "default"),
                *(("-m", options.model) if options.model else ()),
                *("--include-directories", str(_messages(context))),
                *(("--resume" if resumed else "--session-id"), named),
            ),
            env={**environment_for(options, home, {}), **_titled(context, resumed)},
            session=named,
            needs=Needs(
                writable=home.folders,
                hosts=ABOUT["gemini"].hosts,
                base_url=options.base_url,
                command=options.command or ABOUT["gemini"].program,
            ),
        )

    def fitted(self, text: str, context: ProgramContext) -> str:
        """The words as it has to be given them, so that it takes none of them for a command."""
        prompt = prompt_for(context.options.name, text.strip(), str(context.cwd)).decode().strip()
        begun = f"Message:\n{prompt}" if _COMMAND.match(prompt) else prompt
        # A blank keeps the Enter that follows from being something else; it takes it off again.
        return f"{begun} " if _EATS_ENTER.search(begun) and not is_long(begun) else begun

    def composer(self, screen: Screen, text: str) -> Composer:
        return composer_on(screen, text)

    def status(self, screen: Screen) -> Status:
        return status_on(screen)

    def question(self, screen: Screen) -> str:
        return question_on(screen)

    def written(self, context: ProgramContext, session: str) -> GeminiWritten:
        return GeminiWritten(context.home)


def _lay_out(home: Folders, context: ProgramContext) -> None:
    # A model that repeats itself it would stop in the middle of a table, and ask a person about it.
    own = own_options(context.options).model_copy(
        update={} if "stop_loops" in context.options.options else {"stop_loops": False}
    )
    if not own.hands:
        raise BadInput(
            f"agent {context.options.name!r}: on a terminal it cannot be without hands; make it headless"
        )
    home.clear(CONVERSATIONS)
    logins = logins_in(context.user_home, context.options.env)
    copied = [login.target for login in logins if copy_login(login, home.path) is not None]
    selected = selected_login(context.options.name, context.options.env, copied)
    home.write_json(f"{CONFIG}/settings.json", {**settings_for(own, selected), "ui": _UI})
    home.write(f"{CONFIG}/policies/podium.toml", allowing_rules(FILES))
    home.write_json(f"{CONFIG}/projects.json", {"projects": {str(context.cwd.resolve()): SLUG}})
    home.write_json(f"{EXTENSION}/gemini-extension.json", {"name": "podium", "version": "1.0.0"})
    home.write_json(f"{EXTENSION}/hooks/hooks.json", _hooks(context.hook_command))
    home.make(CONVERSATIONS)
    _messages(context).mkdir(mode=0o700, exist_ok=True)


def _messages(context: ProgramContext) -> Path:
    """Return the folder of messages that are handed over as files: it reads none outside of what it is told of."""
    return context.home.with_name("messages")


def _titled(context: ProgramContext, resumed: bool) -> dict[str, str]:
    """Return the variable for the text in its title's brackets, which is its folder by default."""
    return {"CLI_TITLE": f"{RESUMED}{context.cwd.name}"} if resumed else {}


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
