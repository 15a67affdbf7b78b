"""Layout of folders that the loop expects, written with samples and shims."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from pydantic import Field

from podium.core.errors import NotPossibleNow
from podium.core.model import FrozenModel
from podium.jobs.sense.io.launchd import FOLDER, plist_of
from podium.jobs.sense.io.safe_files import create_file, install_file, make_folder
from podium.jobs.sense.io.schedule import SHIM, TickSchedule

PARSER_SHIM = "g/tools/gmx_clc_parse_plan.py"
SAMPLES = "g/tools/samples"
FOLDERS = ("bridge/inbox/CLC", "bridge/outbox/LIAM", "logs", "g/reports/wo_candidates")
PAGES = {
    "g/docs/CLC_GMX_ORCHESTRATOR_SPEC_v1.md": "CLC_GMX_ORCHESTRATOR_SPEC_v1.md",
    "g/docs/GMX_PLAN_SCHEMA_v1.md": "GMX_PLAN_SCHEMA_v1.md",
    "g/knowledge/clc/README.md": "knowledge_README.md",
    "g/telemetry/health_check_latest.json": "health_check_latest.json",
    "state/clc_sessions/SESSION-DEMO-001.yaml": "SESSION-DEMO-001.yaml",
}
"""Target path → name among the files that come with Podium."""


class Scaffolded(FrozenModel):
    """Result of writing the layout; all paths relative to the root."""

    root: str
    made: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    """Was there already and stays as it is."""
    replaced: tuple[str, ...] = ()
    backups: tuple[str, ...] = ()
    """Copies of the files that were replaced."""
    refused: dict[str, str] = Field(default_factory=dict)
    """Path → reason why it could not be written."""


class _File(NamedTuple):
    path: str
    content: bytes
    mode: int = 0o644
    replaceable: bool = False


def write_layout(
    schedule: TickSchedule, samples: Mapping[str, str], *, force: bool = False
) -> Scaffolded:
    """Write the layout beneath the schedule's root, which must be there and a real path.

    `samples` are plans: name → text. What is there stays; with `force` shims and samples are replaced, the old
    ones kept beside them. No link is followed. What cannot be written is said, and the rest is.
    """
    writing = _Writing(Path(schedule.root), force)
    for folder in FOLDERS:
        writing.folder(folder)
    for file in _files(schedule, samples):
        writing.file(file)
    return writing.done()


def write_shims(root: Path) -> None:
    """Put what schedulers start where it belongs, unless something has its name. Raises `NotPossibleNow`."""
    for shim in _shims():
        create_file(root, shim.path, shim.content, mode=shim.mode)


class _Writing:
    """Writes one thing after another, and remembers what became of each."""

    def __init__(self, root: Path, force: bool) -> None:
        self._root = root
        self._force = force
        self._made: list[str] = []
        self._unchanged: list[str] = []
        self._replaced: list[str] = []
        self._backups: list[str] = []
        self._refused: dict[str, str] = {}

    def folder(self, path: str) -> None:
        with self._refusing(path):
            (self._made if make_folder(self._root, path) else self._unchanged).append(f"{path}/")

    def file(self, file: _File) -> None:
        with self._refusing(file.path):
            if create_file(self._root, file.path, file.content, mode=file.mode):
                self._made.append(file.path)
            elif self._force and file.replaceable:
                self._replace(file)
            else:
                self._unchanged.append(file.path)

    def _replace(self, file: _File) -> None:
        backup = install_file(self._root, file.path, file.content, mode=file.mode)
        (self._replaced if backup else self._unchanged).append(file.path)
        self._backups += [backup] if backup else []

    @contextmanager
    def _refusing(self, path: str) -> Iterator[None]:
        try:
            yield
        except NotPossibleNow as reason:
            self._refused[path] = str(reason)

    def done(self) -> Scaffolded:
        return Scaffolded(
            root=str(self._root),
            made=tuple(self._made),
            kept=tuple(self._unchanged),
            replaced=tuple(self._replaced),
            backups=tuple(self._backups),
            refused=self._refused,
        )


def _files(schedule: TickSchedule, samples: Mapping[str, str]) -> Iterator[_File]:
    yield from _shims()
    for name, text in sorted(samples.items()):
        yield _File(f"{SAMPLES}/{name}", text.encode(), replaceable=True)
    for path, name in PAGES.items():
        yield _File(path, _text(name))
    yield _File(f"{FOLDER}/{schedule.label}.plist", plist_of(schedule))


def _shims() -> Iterator[_File]:
    yield _File(SHIM, _text("gmx_clc_orchestrator.zsh"), 0o755, replaceable=True)
    yield _File(PARSER_SHIM, _text("gmx_clc_parse_plan.py"), 0o755, replaceable=True)


def _text(name: str) -> bytes:
    return (files("podium.jobs.sense.io") / "scaffold_files" / name).read_bytes()
