"""Real programs on a terminal, started by their adapters, with a loopback model to talk to."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from podium.agents.deps import AgentOptions
from podium.agents.tui import Delivered, Injector, Panes, Program, TerminalScreen, look
from podium.agents.tui.adapter import (
    Adapter,
    Launch,
    ProgramContext,
    Status,
    TranscriptEntry,
    Written,
)
from podium.agents.tui.panes import end_program
from podium.core.errors import TimedOut
from podium.core.model import Json
from podium.sandbox.hook_client import DENY_AS_JSON
from podium.testing import retry_until
from podium.testing.modelserver import ModelServer, Script
from tests.integration.agents.tui.tmux_harness import Harness, housed

KEY = "sk-live-hunter2-hunter2-hunter2"
"""The only key that the model takes. Programs find it as `secret://KEY`."""

Options = Callable[[str], AgentOptions]
"""The agent's options for a model that is served at this address."""


def words_of(entries: list[TranscriptEntry]) -> list[str]:
    return [item.text for item in entries if item.kind == "words"]


def files_with_the_key(root: Path) -> list[Path]:
    return [file for file, data in files_below(root) if KEY.encode() in data]


def files_below(root: Path) -> Iterator[tuple[Path, bytes]]:
    """Each with what it holds. A program that lives makes and removes files meanwhile."""
    for folder, _, names in os.walk(root):
        for file in (Path(folder, name) for name in names):
            with suppress(OSError):
                if file.is_file():
                    yield file, file.read_bytes()


def kinds_of(entries: list[TranscriptEntry]) -> list[str]:
    return [item.kind for item in entries]


@dataclass
class Live:
    """One program that is up, with its model, its pane and what it writes."""

    harness: Harness
    server: ModelServer
    adapter: Adapter
    place: ProgramContext
    launched: Launch
    panes: Panes
    pane: str = ""
    sent: int = field(default=0)
    """How many messages it has taken."""

    @property
    def written(self) -> Written:
        found = self.adapter.written(self.place, self.launched.session)
        assert found is not None
        return found

    async def screen(self) -> TerminalScreen:
        return await look(self.harness.control, self.pane)

    async def becomes(self, *wanted: Status) -> TerminalScreen:
        """Its screen once its status is one of these."""

        async def is_so() -> bool:
            return self.adapter.status(await self.screen()) in wanted

        await self._until(is_so, f"never became {' or '.join(wanted)}")
        return await self.screen()

    async def shows(self, text: str) -> TerminalScreen:
        """Its screen once this is on it."""

        async def is_shown() -> bool:
            return text in (await self.screen()).text

        await self._until(is_shown, f"never showed {text!r}")
        return await self.screen()

    async def deliver(self, text: str) -> Delivered:
        """Hand it the next message. On return it was taken."""
        folder = self.harness.server.settings.folder / "messages"
        injector = Injector(
            self.harness.control,
            self.harness.activity,
            self.pane,
            self.adapter,
            folder,
            self.adapter.patience,
        )
        self.sent += 1
        return await injector.deliver(self.sent, text)

    async def hears(self, mark: Json, kind: str = "end", count: int = 1) -> list[TranscriptEntry]:
        """Wait for `count` entries of that kind after the mark, and return all entries up to the last of them."""
        messages: list[TranscriptEntry] = []

        def is_there() -> bool:
            nonlocal mark
            more, mark = self.written.since(mark)
            messages.extend(more)
            return sum(item.kind == kind for item in messages) >= count

        await self._until(is_there, f"never wrote {count} of {kind!r}: {messages!r:.2000}")
        found = [at for at, item in enumerate(messages) if item.kind == kind]
        return messages[: found[count - 1] + 1]

    async def ask(self, text: str) -> list[TranscriptEntry]:
        """A whole turn: what it wrote down from the message to its end."""
        mark = self.written.end_position()
        await self.deliver(text)
        return await self.hears(mark)

    async def press(self, *keys: str) -> None:
        await self.panes.press(self.pane, *keys)

    async def start_again(self) -> None:
        """Kill the program and start it in the same conversation. Messages are numbered on."""
        session = self.launched.session or self.written.session
        await end_program(self.harness.control, self.pane)
        self.launched = self.adapter.launch(self.place, session)
        await self.panes.restart(self.pane, self._program())

    async def start(self) -> None:
        self.pane = await self.panes.open(self._program())
        await self.harness.activity.follow(self.pane)

    def _program(self) -> Program:
        launched = self.launched
        return Program(
            name=self.place.name, argv=launched.argv, cwd=self.place.cwd, env=launched.env
        )

    async def _until(self, condition: Callable[[], Any], complaint: str) -> None:
        """With the screen in the complaint: what it shows says mostly why."""
        try:
            await retry_until(condition)
        except TimedOut:
            raise AssertionError(f"{complaint}\n{(await self.screen()).text}") from None


@asynccontextmanager
async def alive(
    root: Path,
    adapter: Adapter,
    options: Options,
    script: Script | Mapping[str, Any],
    *,
    hook: Sequence[str] = ("false",),
    confined: bool = False,
    started: bool = True,
    **server: object,
) -> AsyncIterator[Live]:
    """The program, started and still coming up. `script` as `ModelServer` takes it; a mapping of markers will do.

    `hook` is its tool hook's command, see `recording_hook`; `server` are fields of `TerminalSettings`.
    """
    played = script if isinstance(script, Script) or "rules" in script else Script.by_marker(script)
    async with ModelServer(played, key=KEY) as model, housed(root, **server) as harness:
        place = _place(root, options(model.url), hook, confined)
        panes = Panes(harness.control, harness.server.settings, reveal=lambda reference: KEY)
        live = Live(harness, model, adapter, place, adapter.launch(place, None), panes)
        if started:
            await live.start()
        yield live


def _place(
    root: Path, options: AgentOptions, hook: Sequence[str], confined: bool
) -> ProgramContext:
    place = ProgramContext(
        name="planner",
        cwd=root / "work",
        home=root / "side/home",
        temporary=root / "side/tmp",
        options=options,
        hook_command=tuple(hook),
        user_home=root / "person",
        confined=confined,
    )
    for folder in (place.cwd, place.home, place.temporary, place.user_home):
        folder.mkdir(parents=True, mode=0o700)
    return place


def recording_hook(root: Path, *denied: str) -> tuple[str, ...]:
    """A tool hook that writes down what it is asked in `hooked`, and denies what has one of these words in it."""
    script = root / "hook.py"
    script.write_text(
        _HOOK.format(record=str(root / "hooked.jsonl"), denied=denied, as_json=DENY_AS_JSON)
    )
    return (sys.executable, "-IS", str(script))


def hooked(root: Path) -> list[dict[str, Any]]:
    """Return the requests that the recording hook received."""
    record = root / "hooked.jsonl"
    return [json.loads(line) for line in record.read_text().splitlines()] if record.exists() else []


_HOOK = """
import json, sys
event = json.load(sys.stdin)
open({record!r}, "a").write(json.dumps(event) + "\\n")
if any(word in json.dumps(event["tool_input"]) for word in {denied!r}):
    if sys.argv[1:] != [{as_json!r}]:
        sys.stderr.write("podium: Permission Denied: the rules of the house")
        sys.exit(2)
    decision, reason = "deny", "Permission Denied: the rules of the house"
else:
    decision, reason = "allow", "permitted"
answer = {{"hookEventName": event["hook_event_name"], "permissionDecision": decision,
    "permissionDecisionReason": reason}}
print(json.dumps({{"hookSpecificOutput": answer}}))
"""
