"""Factory of the loop's sources: the three it always has, and those that podium.yaml adds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from podium.config.folders import STATE_FOLDER
from podium.core.errors import BadInput
from podium.core.processes import Confinement, Mount
from podium.jobs.sense.options import Layout, SenseOptions, SourceOptions
from podium.jobs.sense.ports import Source
from podium.platform import make_private_folder

if TYPE_CHECKING:
    from podium.app.app import Podium
    from podium.jobs.sense.io.sources import SourceKit


ALWAYS = ("health", "acks", "sessions")
SOURCE_NEEDS = {
    "file": "path",
    "folder": "path",
    "log": "path",
    "command": "command",
    "http": "url",
}
"""Kind of source → the key it cannot do without."""


def build_sources(podium: Podium, options: SenseOptions) -> list[Source]:
    """The three the loop always has, then the others in their order.

    Raises `BadInput` for a source that cannot be. Commands and addresses that a project brought and nobody has
    trusted are not asked, which their looks say.
    """
    from podium.jobs.sense.io.sources import (
        FileSource,
        FolderSource,
        SourceKit,
        UntrustedSource,
        hiding,
    )

    layout = options.layout
    kit = SourceKit(
        root=podium.folders.project,
        clock=podium.clock,
        redact=hiding(podium.redactor.text),
        is_own=own_paths(layout),
        file_bytes=options.file_bytes,
    )
    stalled = options.session_stalled_seconds
    found: list[Source] = [
        FileSource(kit, "health", layout.health, stale_seconds=options.health_stale_seconds),
        FolderSource(kit, "acks", layout.acks, pattern="*.ack.json", newest=options.newest_acks),
        FolderSource(
            kit,
            "sessions",
            layout.sessions,
            pattern="*.yaml",
            newest=options.newest_sessions,
            stale_seconds=stalled,
        ),
    ]
    _refuse_same_names(options)
    held_back = _untrusted(podium, options)
    for each in options.sources:
        source = _source(podium, kit, each)
        wish = held_back.get(each.name)
        found.append(source if wish is None else UntrustedSource(kit, each.name, wish))
    return found


def own_paths(layout: Layout) -> Callable[[str], bool]:
    """Whether the loop itself writes a path: what it writes must never wake it."""
    own = own_prefixes(layout)
    return lambda path: path.startswith(own)


def own_prefixes(layout: Layout) -> tuple[str, ...]:
    """How the paths begin that the loop itself writes."""
    return (
        # With what is behind it: old ones that were turned over, and what a scheduler writes beside it.
        layout.log.rsplit(".", 1)[0],
        layout.parser_log,
        layout.telemetry,
        f"{layout.candidates}/",
        f"{STATE_FOLDER}/",
    )


def outside_commands(options: SenseOptions) -> dict[str, str]:
    """What sources start or ask outside, by name: what a person has to trust."""
    return {
        each.name: " ".join(each.command) if each.kind == "command" else each.url
        for each in options.sources
        if each.kind in ("command", "http")
    }


def _refuse_same_names(options: SenseOptions) -> None:
    names = [*ALWAYS, *(each.name for each in options.sources)]
    doubled = next((name for name in names if names.count(name) > 1), None)
    if doubled is not None:
        raise BadInput(
            f"podium.yaml has two sources called {doubled!r} under `flows: sense: sources:`; "
            "rename one"
        )


def _untrusted(podium: Podium, options: SenseOptions) -> dict[str, str]:
    """Sources of the project's file that want something outside and nobody has trusted, by name."""
    configuration = podium.configuration
    owners = [layer.name for layer in configuration.layers if "sense" in layer.settings.flows]
    if owners[-1:] != ["project"] or configuration.project_is_trusted():
        return {}
    return outside_commands(options)


def _source(podium: Podium, kit: SourceKit, given: SourceOptions) -> Source:
    needed = SOURCE_NEEDS.get(given.kind, "")
    if needed and not getattr(given, needed):
        raise BadInput(
            f"source {given.name!r} is of kind {given.kind!r} and has no `{needed}`; write one under "
            "`flows: sense: sources:`"
        )
    return _BUILDERS[given.kind](podium, kit, given)


def _file(podium: Podium, kit: SourceKit, given: SourceOptions) -> Source:
    from podium.jobs.sense.io.sources import FileSource

    return FileSource(kit, given.name, given.path, stale_seconds=given.stale_seconds)


def _folder(podium: Podium, kit: SourceKit, given: SourceOptions) -> Source:
    from podium.jobs.sense.io.sources import FolderSource

    return FolderSource(
        kit,
        given.name,
        given.path,
        pattern=given.pattern,
        newest=given.newest,
        stale_seconds=given.stale_seconds,
    )


def _command(podium: Podium, kit: SourceKit, given: SourceOptions) -> Source:
    from podium.jobs.sense.io.sources import CommandSource

    return CommandSource(
        kit,
        given.name,
        given.command,
        launcher=podium.launcher,
        fence=lambda: looking_fence(podium),
        timeout_seconds=given.timeout_seconds,
    )


def _http(podium: Podium, kit: SourceKit, given: SourceOptions) -> Source:
    from podium.jobs.sense.io.sources import HttpSource

    return HttpSource(kit, given.name, given.url, timeout_seconds=given.timeout_seconds)


def _git(podium: Podium, kit: SourceKit, given: SourceOptions) -> Source:
    from podium.jobs.sense.io.sources import GitSource

    return GitSource(
        kit,
        given.name,
        given.path,
        launcher=podium.launcher,
        fence=lambda: looking_fence(podium),
        commits=given.newest,
        timeout_seconds=given.timeout_seconds,
    )


def _log(podium: Podium, kit: SourceKit, given: SourceOptions) -> Source:
    from podium.jobs.sense.io.sources import LogSource

    return LogSource(
        kit, given.name, given.path, lines=given.newest, stale_seconds=given.stale_seconds
    )


def _figures(podium: Podium, kit: SourceKit, given: SourceOptions) -> Source:
    from podium.jobs.sense.io.sources import FiguresSource

    return FiguresSource(kit, given.name, given.path)


_BUILDERS: Mapping[str, Callable[[Podium, SourceKit, SourceOptions], Source]] = {
    "file": _file,
    "folder": _folder,
    "command": _command,
    "http": _http,
    "git": _git,
    "log": _log,
    "figures": _figures,
}
"""Kind → builder. A new source is a class, a builder and a line here."""


def looking_fence(podium: Podium) -> Confinement:
    """For commands that only look: the root is there to be read, and nothing can be written."""
    settings = podium.configuration.sandbox
    if settings.kind == "none":
        return Confinement()
    root = podium.folders.project
    mounts = [Mount(source=str(root), target=str(root))]
    hidden = root / STATE_FOLDER
    if hidden.is_dir():
        empty = podium.folders.user_state / "empty"
        make_private_folder(empty)
        mounts.append(Mount(source=str(empty), target=str(hidden)))
    return Confinement(
        kind="kernel",
        mounts=tuple(mounts),
        network=settings.network or "none",
        hosts=settings.hosts if settings.network == "listed" else (),
    )
