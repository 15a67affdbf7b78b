"""Policy layers of the loop and its worker, and the confinement of commands in work orders."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from podium.app.confinement import protected_mounts, repositories_of, take_state_name
from podium.config.folders import STATE_FOLDER
from podium.config.settings import SandboxSettings
from podium.core.decisions import Effect, Tier
from podium.core.errors import CallRefused
from podium.core.processes import Confinement, ExecRules, FolderConfinement, Mount
from podium.jobs.sense.options import SenseOptions
from podium.jobs.sense.orders.release import EARNED
from podium.platform import make_private_folder
from podium.policy import Policy, PolicyLayer

LAUNCHERS = ("g/tools/gmx_clc_orchestrator.zsh", "g/tools/gmx_clc_parse_plan.py")
HOUR, DAY = 3600.0, 86_400.0


def worker_layer(options: SenseOptions) -> PolicyLayer:
    """Orders write in safe zones and touch no forbidden one; what changes the bridge itself needs a person."""
    layout = options.layout
    zones = {
        "safe": {"paths": options.safe_zones},
        "forbidden": {"paths": options.forbidden_zones},
        # An order that writes orders, or answers in the worker's name, must not do so by itself.
        "bridge": {
            "paths": (layout.inbox, layout.claimed, layout.done, layout.parked, layout.acks),
            "write_tier": Tier.T2,
        },
        "loop-record": {
            "paths": (*own_files(options), *steering(options)),
            "write_tier": Tier.T2,
        },
        # A scheduler starts these with a person's rights, outside of every fence.
        "launchers": {"paths": LAUNCHERS, "write_tier": Tier.T2},
    }
    # Its history lies outside the safe zones, and no path of the call says so.
    no_commits = {
        "name": "orders-commit-nothing",
        "tool": "git_commit",
        "roles": ("worker",),
        "decision": Effect.DENY,
        "why": "the repository's history is outside the safe zones",
    }
    policy = Policy.model_validate({"zones": zones, "rules": (no_commits,)})
    return PolicyLayer(origin="built-in", policy=policy)


def own_files(options: SenseOptions) -> tuple[str, ...]:
    """Return the loop's own logs and telemetry, which orders may not rewrite."""
    return (options.layout.log, options.layout.parser_log, options.layout.telemetry)


def steering(options: SenseOptions) -> tuple[str, ...]:
    """Return the paths that steer the loop: its rules, and the candidates that people move into the inbox."""
    return (*((options.rules,) if options.rules else ()), options.layout.candidates)


def unconfined_layer() -> PolicyLayer:
    """Return the layer that asks before every command of an order where there is no kernel confinement."""
    rule = {
        "name": "orders-run-nothing-unconfined",
        "tool": "run_command",
        "roles": ("worker",),
        "confined": False,
        "decision": Effect.ASK,
        "tier": Tier.T2,
        "why": "commands of orders cannot be confined on this machine",
    }
    return PolicyLayer(origin="user", policy=Policy.model_validate({"rules": (rule,)}))


def sense_layer(options: SenseOptions) -> PolicyLayer:
    """The loop itself writes candidates and orders, and nothing else; so many orders and no more."""
    layout = options.layout
    policy = Policy.model_validate(
        {
            "zones": {
                "safe": {"paths": (layout.candidates, layout.inbox)},
                "forbidden": {"paths": options.forbidden_zones},
            },
            "quotas": (
                _quota("orders-per-hour", options.orders_per_hour, HOUR),
                _quota("orders-per-day", options.orders_per_day, DAY),
            ),
        }
    )
    return PolicyLayer(origin="built-in", policy=policy)


def earned_layer(target: str, zones: Sequence[str], granted: Tier) -> PolicyLayer:
    """Leave to deliver orders for this target that act in these zones unasked in autonomous mode."""
    rule = {
        "name": EARNED,
        "tool": "deliver_order",
        "roles": ("sense",),
        "modes": ("autonomous",),
        "arguments": {
            "target": {"equals": target},
            "zones": {"one_of": tuple(zones)},
        },
        "decision": Effect.ALLOW,
        "up_to_tier": granted,
        "why": f"people granted autonomy for {target!r} in {', '.join(zones)} up to {granted}",
    }
    return PolicyLayer(origin="user", policy=Policy.model_validate({"rules": (rule,)}))


def _quota(name: str, limit: int, seconds: float) -> dict[str, object]:
    return {"name": name, "tool": "deliver_order", "limit": limit, "seconds": seconds}


MAX_LOOKED_AT = 500_000
"""Files of safe zones that are looked at for second names."""


class OrderConfinement:
    """Confinement of the commands of work orders; a `ConfinementProvider`."""

    def __init__(
        self,
        options: SenseOptions,
        settings: SandboxSettings,
        exec_rules: Callable[[], ExecRules],
        empty: Path,
    ) -> None:
        """`empty` is a folder to show in place of what stays hidden."""
        self._options = options
        self._settings = settings
        self._exec_rules = exec_rules
        self._empty = empty

    async def confinement(self, root: str) -> Confinement:
        if self._settings.kind == "none":
            return Confinement()
        folder = Path(root)
        self._refuse_shared_files(folder)
        return Confinement(
            kind="kernel",
            mounts=tuple(self._mounts(folder)),
            network=self._settings.network or "none",
            hosts=self._settings.hosts if self._settings.network == "listed" else (),
            execs=self._exec_rules().model_copy(update={"repositories": repositories_of(folder)}),
        )

    def held(self, root: str) -> FolderConfinement | None:
        if self._settings.kind != "kernel" or not self._settings.network:
            return None
        listed = self._settings.hosts if self._settings.network == "listed" else ()
        return FolderConfinement(network=self._settings.network, hosts=listed)

    def _mounts(self, root: Path) -> Iterator[Mount]:
        yield Mount(source=str(root), target=str(root))
        for folder in _plain_folders(root, self._options.safe_zones):
            yield Mount(source=folder, target=folder, writable=True)
        layout = self._options.layout
        # Orders and answers are written by the worker alone.
        bridge = (layout.inbox, layout.claimed, layout.done, layout.parked, layout.acks)
        for folder in bridge:
            # One that is not there yet could be made by a command, and filled with answers of its own.
            _make_plain_folder(root, folder)
        for folder in _plain_folders(root, (*bridge, *steering(self._options))):
            yield Mount(source=folder, target=folder)
        self._hold_launchers(root)
        for file in (
            root / path
            for path in (*LAUNCHERS, *own_files(self._options), *steering(self._options))
        ):
            if _is_plain_file(file):
                yield Mount(source=str(file), target=str(file))
        for zone in _plain_folders(root, _outermost(self._options.safe_zones)):
            yield from protected_mounts(Path(zone), self._empty)
        make_private_folder(self._empty)
        take_state_name(root)
        for hidden in _plain_folders(root, (*self._options.forbidden_zones, STATE_FOLDER)):
            yield Mount(source=str(self._empty), target=hidden)

    def _hold_launchers(self, root: Path) -> None:
        """Make sure that the launchers exist: a command could create a missing one, and a scheduler would start it."""
        from podium.jobs.sense.io.layout import write_shims

        writable = list(_plain_folders(root, self._options.safe_zones))
        held = [
            launcher
            for launcher in LAUNCHERS
            if any((root / launcher).is_relative_to(z) for z in writable)
        ]
        if held and not all(os.path.lexists(root / launcher) for launcher in held):
            write_shims(root)
        for launcher in held:
            if not _is_plain_file(root / launcher):
                raise CallRefused(
                    f"{launcher!r} is started by schedulers but is not a regular file, so it cannot be protected from "
                    "commands; replace it with a regular file, or remove it"
                )

    def _refuse_shared_files(self, root: Path) -> None:
        """A file with a second name outside of the safe zones would let a command write through it."""
        names: Counter[tuple[int, int]] = Counter()
        shared: dict[tuple[int, int], tuple[str, int]] = {}
        for path, status in _files(root, self._options.safe_zones):
            if status.st_nlink > 1:
                inode = (status.st_dev, status.st_ino)
                names[inode] += 1
                shared[inode] = (path, status.st_nlink)
        for inode, (path, links) in shared.items():
            if names[inode] < links:
                raise CallRefused(
                    f"{os.path.relpath(path, root)!r} has a hard link outside the safe zones, through which a command "
                    "could write there; replace it with a copy"
                )


def _make_plain_folder(root: Path, path: str) -> None:
    """Make it where it is not there. Raises `CallRefused` where a link or a file is in its way."""
    folder = root
    for name in Path(path).parts:
        folder /= name
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            why = error.strerror
        else:
            why = "a symbolic link" if folder.is_symlink() else ""
        if why:
            raise CallRefused(
                f"{path!r} must be a folder of the project before an order can run commands, but "
                f"{str(folder.relative_to(root))!r} cannot be a folder ({why}); fix that first"
            )


def _is_plain_file(file: Path) -> bool:
    return file.is_file() and file.resolve() == file


def _plain_folders(root: Path, paths: Iterable[str]) -> Iterator[str]:
    """Yield the folders that exist and are no links: a link would lead the mount somewhere else."""
    for path in paths:
        folder = root / path
        if folder.is_dir() and folder.resolve() == folder:
            yield str(folder)


def _files(root: Path, paths: Iterable[str]) -> Iterator[tuple[str, os.stat_result]]:
    """Every file in these places once. Raises `CallRefused` when there are too many to look at."""
    count = 0
    for zone in _outermost(paths):
        for folder, _, names in os.walk(root / zone):
            for name in names:
                count += 1
                if count > MAX_LOOKED_AT:
                    raise CallRefused(
                        f"the safe zones contain more than {MAX_LOOKED_AT} files, too many to check for hard "
                        "links; narrow `safe_zones`"
                    )
                path = os.path.join(folder, name)  # noqa: PTH118 - walks may be long
                try:
                    yield path, os.lstat(path)
                except OSError:
                    continue


def _outermost(paths: Iterable[str]) -> list[str]:
    unique = [Path(path) for path in dict.fromkeys(paths)]
    return [str(p) for p in unique if not any(p != o and p.is_relative_to(o) for o in unique)]
