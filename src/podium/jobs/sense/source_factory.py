"""Factory of the loop's sources: the three it always has, and those that podium.yaml adds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from podium.config.folders import STATE_FOLDER
from podium.core.errors import BadInput
from podium.core.processes import Confinement, Mount
from podium.jobs.sense.options import Layout, SenseOptions, SourceOptions
from podium.jobs.sense.ports import StateSource
from podium.platform import make_private_folder

if TYPE_CHECKING:
    from podium.app.app import Podium
    from podium.jobs.sense.io.sources import SourceDeps


ALWAYS = ("health", "acks", "sessions")
SOURCE_NEEDS = {
    "file": "path",
    "folder": "path",
    "log": "path",
    "command": "command",
    "http": "url",
}
"""Kind of source → the key it cannot do without."""


def build_sources(podium: Podium, options: SenseOptions) -> list[StateSource]:
    """The three the loop always has, then the others in their order.

    Raises `BadInput` for a source that cannot be. Commands and addresses that a project brought and nobody has
    trusted are not asked, which their looks say.
    """
    from podium.jobs.sense.io.content import hiding
    from podium.jobs.sense.io.sources import (
        FileSource,
        FolderSource,
        SourceDeps,
        UntrustedSource,
    )

    layout = options.layout
    deps = SourceDeps(
        root=podium.folders.project,
        clock=podium.clock,
        redact=hiding(podium.redactor.text),
        is_own=own_paths(layout),
        file_bytes=options.file_bytes,
    )
    stalled = options.session_stalled_seconds
    sources: list[StateSource] = [
        FileSource(deps, "health", layout.health, stale_seconds=options.health_stale_seconds),
        FolderSource(deps, "acks", layout.acks, pattern="*.ack.json", newest=options.newest_acks),
        FolderSource(
            deps,
            "sessions",
            layout.sessions,
            pattern="*.yaml",
            newest=options.newest_sessions,
            stale_seconds=stalled,
        ),
    ]
    _refuse_same_names(options)
    held_back = _untrusted(podium, options)
    for source_options in options.sources:
        source = _source(podium, deps, source_options)
        target = held_back.get(source_options.name)
        sources.append(
            source if target is None else UntrustedSource(deps, source_options.name, target)
        )
    return sources


def own_paths(layout: Layout) -> Callable[[str], bool]:
    """Return a test for paths the loop itself writes: what it writes must never trigger a tick."""
    own = own_prefixes(layout)
    return lambda path: path.startswith(own)


def own_prefixes(layout: Layout) -> tuple[str, ...]:
    """Return prefixes of the paths the loop itself writes."""
    return (
        # With what is behind it: old ones that were turned over, and what a scheduler writes beside it.
        layout.log.rsplit(".", 1)[0],
        layout.parser_log,
        layout.telemetry,
        f"{layout.candidates}/",
        f"{STATE_FOLDER}/",
    )


def outside_commands(options: SenseOptions) -> dict[str, str]:
    """Return commands and URLs of sources, by name: a person has to trust them."""
    return {
        source.name: " ".join(source.command) if source.kind == "command" else source.url
        for source in options.sources
        if source.kind in ("command", "http")
    }


def _refuse_same_names(options: SenseOptions) -> None:
    names = [*ALWAYS, *(source.name for source in options.sources)]
    doubled = next((name for name in names if names.count(name) > 1), None)
    if doubled is not None:
        raise BadInput(
            f"podium.yaml has two sources named {doubled!r} under `flows: sense: sources:`; "
            "rename one"
        )


def _untrusted(podium: Podium, options: SenseOptions) -> dict[str, str]:
    """Sources of the project's file that want something outside and nobody has trusted, by name."""
    configuration = podium.configuration
    owners = [layer.name for layer in configuration.layers if "sense" in layer.settings.flows]
    if owners[-1:] != ["project"] or configuration.project_is_trusted():
        return {}
    return outside_commands(options)


def _source(podium: Podium, deps: SourceDeps, options: SourceOptions) -> StateSource:
    needed = SOURCE_NEEDS.get(options.kind, "")
    if needed and not getattr(options, needed):
        raise BadInput(
            f"source {options.name!r} of kind {options.kind!r} has no `{needed}`; add it under "
            "`flows: sense: sources:`"
        )
    return _BUILDERS[options.kind](podium, deps, options)


def _file(podium: Podium, deps: SourceDeps, options: SourceOptions) -> StateSource:
    from podium.jobs.sense.io.sources import FileSource

    return FileSource(deps, options.name, options.path, stale_seconds=options.stale_seconds)


def _folder(podium: Podium, deps: SourceDeps, options: SourceOptions) -> StateSource:
    from podium.jobs.sense.io.sources import FolderSource

    return FolderSource(
        deps,
        options.name,
        options.path,
        pattern=options.pattern,
        newest=options.newest,
        stale_seconds=options.stale_seconds,
    )


def _command(podium: Podium, deps: SourceDeps, options: SourceOptions) -> StateSource:
    from podium.jobs.sense.io.sources import CommandSource

    return CommandSource(
        deps,
        options.name,
        options.command,
        launcher=podium.launcher,
        confine=lambda: read_only_confinement(podium),
        timeout_seconds=options.timeout_seconds,
    )


def _http(podium: Podium, deps: SourceDeps, options: SourceOptions) -> StateSource:
    from podium.jobs.sense.io.sources import HttpSource

    return HttpSource(deps, options.name, options.url, timeout_seconds=options.timeout_seconds)


def _git(podium: Podium, deps: SourceDeps, options: SourceOptions) -> StateSource:
    from podium.jobs.sense.io.sources import GitSource

    return GitSource(
        deps,
        options.name,
        options.path,
        launcher=podium.launcher,
        confine=lambda: read_only_confinement(podium),
        commits=options.newest,
        timeout_seconds=options.timeout_seconds,
    )


def _log(podium: Podium, deps: SourceDeps, options: SourceOptions) -> StateSource:
    from podium.jobs.sense.io.sources import LogSource

    return LogSource(
        deps, options.name, options.path, lines=options.newest, stale_seconds=options.stale_seconds
    )


def _figures(podium: Podium, deps: SourceDeps, options: SourceOptions) -> StateSource:
    from podium.jobs.sense.io.sources import FiguresSource

    return FiguresSource(deps, options.name, options.path)


_BUILDERS: Mapping[str, Callable[[Podium, SourceDeps, SourceOptions], StateSource]] = {
    "file": _file,
    "folder": _folder,
    "command": _command,
    "http": _http,
    "git": _git,
    "log": _log,
    "figures": _figures,
}
"""Kind → builder. A new source is a class, a builder and a line here."""


def read_only_confinement(podium: Podium) -> Confinement:
    """Return the confinement of commands that only read: the root is visible, and nothing can be written."""
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
