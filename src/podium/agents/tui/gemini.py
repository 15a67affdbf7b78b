"""Gemini CLI on a terminal: its start, its screen and its transcript.

It is set up as the headless one: its folder counts as untrusted, every tool is asked for by the hook, and rules leave nothing
that it would ask a person. What is different stands here.

Its transcript has one record a line, each written when it is whole. What the model said comes a second time, with how its
tools ended. No record says that a turn is over; our own hook adds one that does.
"""

from __future__ import annotations

import json
import re
import shlex
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

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
from podium.agents.headless.gemini.records import provider_message
from podium.agents.headless.gemini.tools import FILES, outcome, prompt_for, translate
from podium.agents.headless.home import HomeFolders, copy_login
from podium.agents.kinds import ABOUT
from podium.agents.outcome import plain_line
from podium.agents.private_files import is_really_in, real_paths
from podium.agents.program import Needs, record_of
from podium.agents.tui.adapter import Launch, ProgramContext, Status, TranscriptEntry
from podium.agents.tui.jsonl_tail import JsonlTail, Record, opened
from podium.agents.tui.screen import Composer, Manner, Patience, TerminalScreen, surely_drawn
from podium.core.errors import BadInput
from podium.core.model import Json
from podium.ports import Translate, nameless_use

ENDED = "ended"
"""Value of `podium` in the record that the hook adds."""
CANCELLED = "Request cancelled."
_UNTRUSTED_TAGS = ("<untrusted_context>\n", "\n</untrusted_context>")
"""Tags that it puts around what tools printed."""
_FILES = "session-*.jsonl"
_MAX_FIRST_LINE = 100_000


class GeminiWritten:
    """Reads the newest conversation of a private home: a person may have begun another."""

    def __init__(self, home: Path) -> None:
        self._reading = _Reading()
        self._tail = JsonlTail(_Conversations(home), self._read, partial(_session_of, home))

    @property
    def session(self) -> str:
        return self._tail.session

    def folders(self) -> Sequence[Path]:
        return self._tail.folders()

    def end_position(self) -> Json:
        return self._tail.end_position()

    def since(self, position: Json) -> tuple[list[TranscriptEntry], Json]:
        """The mark has with it what was told last: the same record may come once more."""
        self._reading = _Reading.of(position)
        entries, at = self._tail.since(position)
        return entries, {**at, "reading": asdict(self._reading)} if isinstance(at, dict) else at

    def _read(self, record: Record) -> list[TranscriptEntry]:
        return self._reading.take(record)


@dataclass(frozen=True)
class _Conversations:
    """The conversations of a home. Resuming one, it begins another file of its name and leaves it at that."""

    home: Path

    def find(self) -> Path | None:
        """The one that was written to last; of several files of a name the largest has the conversation."""
        largest: dict[str, tuple[int, int, Path]] = {}
        for file in _files_in(self.home):
            facts = _facts_of(file)
            name = file.stem.rpartition("-")[2]
            if facts is not None and facts > largest.get(name, (-1, 0, file))[:2]:
                largest[name] = (*facts, file)
        newest = max(largest.values(), key=lambda candidate: candidate[1], default=None)
        return newest[2] if newest is not None else None

    def folders(self) -> Sequence[Path]:
        return (self.home / CONVERSATIONS,) if is_really_in(self.home, CONVERSATIONS) else ()


def _files_in(home: Path) -> list[Path]:
    return real_paths(home, CONVERSATIONS, _FILES)


def _facts_of(file: Path) -> tuple[int, int] | None:
    """Its size, and when it was written to last."""
    try:
        facts = file.lstat()
    except OSError:
        return None
    return facts.st_size, facts.st_mtime_ns


@dataclass
class _Reading:
    """Progress of reading a conversation within a turn."""

    told: str = ""
    """The record whose words were told last."""
    fault: str = ""
    """Error message since the last prompt."""

    @classmethod
    def of(cls, position: Json) -> _Reading:
        """As a mark has it. One that has none begins."""
        value = position.get("reading") if isinstance(position, dict) else None
        fields = {**value} if isinstance(value, dict) else {}
        return cls(str(fields.get("told") or ""), str(fields.get("fault") or ""))

    def take(self, record: Record) -> list[TranscriptEntry]:
        kind, content = record.get("type"), record.get("content")
        if kind == "user":
            return self._take_prompt(record)
        if kind == "gemini":
            return self._take_text(record)
        if kind == "error":
            self.fault = plain_line(provider_message(str(content)))
        elif kind == "info" and content == CANCELLED:
            self.fault = CANCELLED
            return [self._end()]
        return [self._end()] if record.get("podium") == ENDED else []

    def _take_prompt(self, record: Record) -> list[TranscriptEntry]:
        """Return the prompt of a record. Results of tools are written down as a person's words, too."""
        content = record.get("displayContent") or record.get("content")
        text = _text_of(content)
        if not text:
            return []
        self.fault = ""
        return [TranscriptEntry("prompt", text)]

    def _take_text(self, record: Record) -> list[TranscriptEntry]:
        self.fault = ""
        name, text = str(record.get("id")), _text_of(record.get("content"))
        again, self.told = name == self.told, name
        entries = [TranscriptEntry("words", text)] if text and not again else []
        calls = record.get("toolCalls")
        used = (
            [_used(call) for call in calls if isinstance(call, dict)]
            if isinstance(calls, list)
            else []
        )
        return [*entries, *used]

    def _end(self) -> TranscriptEntry:
        return TranscriptEntry("end", self.fault, ok=not self.fault)


def has_begun(home: Path, session: str) -> bool:
    """Return whether there is something in a conversation that could be continued."""
    files = [file for file in _files_in(home) if _session_of(home, file) == session]
    return any(_has_messages(home, file) for file in files)


def _has_messages(home: Path, file: Path) -> bool:
    """Return whether messages are left: what failed it takes back by telling all anew, of which the first is its own."""
    count = 0
    with opened(home, file) as lines:
        for line in lines or ():
            record = record_of(line)
            if "$rewindTo" in record:
                return True
            messages = (
                record["$set"].get("messages") if isinstance(record.get("$set"), dict) else None
            )
            if isinstance(messages, list):
                count = len(messages) - 1
            count += record.get("type") in ("user", "gemini")
    return count > 0


def _used(call: Record) -> TranscriptEntry:
    tool, arguments = str(call.get("name")), call.get("args")
    status = "success" if call.get("status") == "success" else "error"
    output = _output_of(call.get("result"))
    ended = outcome(tool, {"status": status, "output": output, "error": {"message": output}})
    use = nameless_use(tool, arguments if isinstance(arguments, dict) else {})
    ok = ended is not None and ended.ok
    why = "no result was reported" if ended is None else ended.error
    return TranscriptEntry("used", "" if ok else why, use=use, ok=ok)


def _output_of(result: Json) -> str:
    """Return what the model was told of a tool's end."""
    for part in result if isinstance(result, list) else []:
        answer = part.get("functionResponse") if isinstance(part, dict) else None
        response = answer.get("response") if isinstance(answer, dict) else None
        output = (
            (response.get("output") or response.get("error"))
            if isinstance(response, dict)
            else None
        )
        if isinstance(output, str):
            return output.removeprefix(_UNTRUSTED_TAGS[0]).removesuffix(_UNTRUSTED_TAGS[1])
    return ""


def _text_of(content: Json) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "".join(text for text in texts if isinstance(text, str))


def _session_of(home: Path, file: Path | None) -> str:
    """Its first record names it."""
    with opened(home, file) as lines:
        first = {} if lines is None else record_of(lines.readline(_MAX_FIRST_LINE))
    return str(first.get("sessionId") or "")


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


def composer_on(screen: TerminalScreen, text: str) -> Composer:
    region = _composer(screen)
    if region is None or _only_comes_up(screen, region):
        return "unseen"
    lines = [line.removeprefix(_PROMPT) for line in screen.lines[region]]
    if [line.strip() for line in lines] == [_NOTHING]:
        return "empty"
    if not _is_beginning(surely_drawn("".join(lines)), text):
        return "other"
    return "unsent" if not lines[-1].strip() and not text.endswith("\n") else "ours"


def status_on(screen: TerminalScreen) -> Status:
    """By its title and its composer, which a question stands in the place of.

    The title alone says ready also before anything is painted and above most questions, and working above some.
    """
    region = _composer(screen)
    if screen.title.startswith(_ASKING) or _box(screen):
        return "asking"
    if screen.title.startswith(_WORKING):
        return "busy"
    return "starting" if region is None or _only_comes_up(screen, region) else "ready"


def question_on(screen: TerminalScreen) -> str:
    """Return the text of the lowest box, without its frame."""
    lines = _box(screen) or screen.lines[-15:]
    return plain_line(" ".join(line.strip(f" {_FRAME}") for line in lines))


def _composer(screen: TerminalScreen) -> slice | None:
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


def _only_comes_up(screen: TerminalScreen, composer: slice) -> bool:
    """Return whether there is nothing above its composer yet, or only what it says before it shows an old conversation.

    It paints the composer first, takes pastes as pastes a moment later, and then says that the folder is not trusted. An
    old conversation comes even later, and with it what was pasted is gone.
    """
    above = screen.lines[: composer.start - 2]
    first = next((line for line in above if line.strip() and not _RULE.fullmatch(line)), "")
    return not first or (RESUMED in screen.title and first.startswith(_UNTRUSTED))


def _box(screen: TerminalScreen) -> tuple[str, ...]:
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
        home = HomeFolders(context.home, context.temporary)
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

    def composer(self, screen: TerminalScreen, text: str) -> Composer:
        return composer_on(screen, text)

    def status(self, screen: TerminalScreen) -> Status:
        return status_on(screen)

    def question(self, screen: TerminalScreen) -> str:
        return question_on(screen)

    def written(self, context: ProgramContext, session: str) -> GeminiWritten:
        return GeminiWritten(context.home)


def _lay_out(home: HomeFolders, context: ProgramContext) -> None:
    # A model that repeats itself it would stop in the middle of a table, and ask a person about it.
    own = own_options(context.options).model_copy(
        update={} if "stop_loops" in context.options.options else {"stop_loops": False}
    )
    if not own.hands:
        raise BadInput(
            f"agent {context.options.name!r}: `hands: false` is not possible on a terminal; run the agent headless"
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
_GREETING = f"printf '%s' {shlex.quote(json.dumps({'systemMessage': 'Podium is connected.'}))}"

# The transcript is named in what the hook is told. Records that it does not know the CLI itself passes over. No two are the
# same, so that each can be found again.
_NOTE_END = (
    r"""said=$(cat); file=${said#*'"transcript_path":"'}; file=${file%%'","cwd":'*}; """
    r"""file=${file//'\"'/'"'}; file=${file//'\\'/'\'}; """
    r"""if [ -f "$file" ]; then printf '{"podium": "%s", "number": "%s-%s-%s"}\n' """
    rf"""{ENDED} $$ $RANDOM $RANDOM >>"$file"; fi"""
)
