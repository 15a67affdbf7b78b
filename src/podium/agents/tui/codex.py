"""Codex on a terminal."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from podium.agents.about import ABOUT
from podium.agents.confined import Needs
from podium.agents.headless.codex import home as codex_home
from podium.agents.headless.codex.tools import Judged
from podium.agents.headless.codex.trust import trusting_hook
from podium.agents.headless.codex.workspace import refuse_foreign_git
from podium.agents.headless.home import Folders, copy_login
from podium.agents.tui import codex_records, codex_screen
from podium.agents.tui.adapting import Launch, Place, Status, Written
from podium.agents.tui.capturing import Screen
from podium.agents.tui.seeing import Composer, Manner, Patience
from podium.domain.errors import BadInput
from podium.ports import Translate

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

    def launch(self, place: Place, session: str | None) -> Launch:
        own = codex_home.codex_options(place.options)
        if not own.hands:
            raise BadInput(
                f"agent {place.options.name!r} has no hands (`hands: false`), which codex can be told only without a "
                "terminal; take that out, or use it without a terminal"
            )
        refuse_foreign_git(place.options.name, place.cwd)
        home = Folders(place.home, place.temporary)
        _lay_out(home, place, own.sandbox)
        # It names a conversation itself, with the first message: killed at that, nobody was told the name.
        resumed = session or codex_records.conversation(place.home).session
        if not codex_records.has_conversation(place.home, resumed):
            resumed = ""
        command = place.options.command or ABOUT["codex"].program
        resume = ("resume", resumed) if resumed else ()
        return Launch(
            argv=(*command, "--no-daemon", "--no-alt-screen", *resume),
            env=_environment(home, place),
            session=resumed,
            needs=Needs(
                writable=home.folders,
                hosts=ABOUT["codex"].hosts,
                base_url=place.options.base_url,
                command=command,
            ),
        )

    def fitted(self, words: str, place: Place) -> str:
        """The words as codex has to be given them, so that it takes none for a command."""
        return codex_screen.as_paste(words)

    def composer(self, screen: Screen, words: str) -> Composer:
        return codex_screen.composer(screen, words)

    def status(self, screen: Screen) -> Status:
        return codex_screen.status(screen)

    def question(self, screen: Screen) -> str:
        return codex_screen.question(screen)

    def written(self, place: Place, session: str) -> Written | None:
        return codex_records.conversation(place.home)


def _lay_out(home: Folders, place: Place, wished: codex_home.Sandbox | None) -> None:
    person = place.user_home / codex_home.CODEX_HOME
    login = codex_home.login_in(person)
    # Codex renews its login: one that is there is newer than the person's own.
    home.clear(codex_home.CONVERSATIONS, login.target)
    if not (home.path / login.target).exists():
        copy_login(login, home.path)
    hook = codex_home.hook_for(place.hook_command)
    hooks = codex_home.lay_hook(home, hook)
    sandbox = "danger-full-access" if place.confined else wished or "workspace-write"
    settings = {
        **codex_home.settings_for(place.options, place.cwd, sandbox, person),
        "approval_policy": "never",  # it would ask in a dialog
        "projects": codex_home.trust_in(
            place.cwd, "untrusted" if _has_settings(place.cwd) else "trusted"
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


def _environment(home: Folders, place: Place) -> dict[str, str]:
    own = {"CODEX_HOME": str(home.path / codex_home.CODEX_HOME), "RUST_LOG": "error"}
    return {**place.options.env, **home.env, **own}


def _has_settings(cwd: Path) -> bool:
    """Whether the project brings settings for codex, which may start programs.

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
