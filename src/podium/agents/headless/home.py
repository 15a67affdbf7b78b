"""Private homes: a CLI gets a home of its own for each run, seeded with a copy of its login.

What it plants there never comes back, with one exception: a login whose tokens it refreshed,
after a look at it.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from podium.agents.headless.refreshing import refreshed
from podium.agents.kit import AgentKit
from podium.agents.private_files import plain_name, write_private
from podium.domain.asking import Reply, Turn
from podium.domain.errors import NotPossibleNow, PodiumError, TimedOut
from podium.domain.model import Json

LARGEST_LOGIN_BYTES = 1_000_000
MOST_HOMES = 100
LOCK = "lock"
LOGINS = "logins.json"
"""Names the files in the home that are copies of logins."""
_MARK = "~"


@dataclass(frozen=True)
class Login:
    """A file that keeps a CLI logged in."""

    source: Path
    """Where the person's own lies."""
    target: str
    """Where the copy goes, from the private home on."""
    refreshable: tuple[str, ...] = ()
    """Dotted names of the values that may come back, such as `tokens.access_token`. The rest must be as it was."""


@dataclass(frozen=True)
class Folders:
    """Private folders of one program: how files are laid in them, and by what it finds them."""

    path: Path
    temporary: Path
    """For `TMPDIR`. Not above the home's own files: codex refuses to work beneath it."""

    def write(self, name: str, content: str) -> Path:
        """Lay a file of settings, private and new."""
        target = self.path / name
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(target, content.encode())
        return target

    def write_json(self, name: str, content: Json) -> Path:
        return self.write(name, json.dumps(content, indent=1))

    @property
    def folders(self) -> tuple[Path, Path]:
        """What the CLI has to write to beside its workspace."""
        return self.path, self.temporary

    @property
    def env(self) -> dict[str, str]:
        """The variables every CLI finds its home by."""
        return {
            "HOME": str(self.path),
            "TMPDIR": str(self.temporary),
            "XDG_CONFIG_HOME": str(self.path / ".config"),
            "XDG_DATA_HOME": str(self.path / ".local/share"),
            "XDG_STATE_HOME": str(self.path / ".local/state"),
            "XDG_CACHE_HOME": str(self.path / ".cache"),
        }


@dataclass(frozen=True)
class Home(Folders):
    """A private home, laid out for one turn."""

    turn: Turn
    """The turn, with its conversation as the CLI names it."""
    logins: tuple[str, ...] = field(default=())
    """Targets of the logins that were there to be copied."""
    number: int = 1
    """Turns at the same time have homes of their own, and conversations stay where they began."""

    def signed(self, reply: Reply) -> Reply:
        """The reply, with its conversation named so that it is found in this home again."""
        if self.number == 1 or reply.session is None:
            return reply
        return reply.model_copy(update={"session": f"{self.number}{_MARK}{reply.session}"})


@contextmanager
def private_home(
    kit: AgentKit,
    turn: Turn,
    agent: str,
    *,
    keep: Sequence[str] = (),
    logins: Sequence[Login] = (),
) -> Iterator[Home]:
    """A home of the run's agent, with nothing in it but `keep` of earlier turns and the logins.

    `keep` are the places, from the home on, of its conversations. One turn at a time may have a
    home: another gets the next one, unless it goes on with a conversation that is at work. On
    leaving, logins whose tokens were refreshed are handed back and the copies removed. From a turn
    that was cancelled or ran out of time, in which the CLI was ended at work, none comes back.
    """
    number, session = _read_session(turn.session)
    with _free_home(kit.homes / plain_name(turn.run_id), plain_name(agent), number) as (
        base,
        taken,
    ):
        home, temporary = base / "home", base / "tmp"
        _real_folder(home)
        _sweep(home, {Path(place) for place in keep})
        _remove(temporary)
        _real_folder(temporary)
        seeds = {login: seed for login in logins if (seed := copy_login(login, home)) is not None}
        asked = turn.model_copy(update={"session": session})
        ended_by_itself = False
        try:
            yield Home(home, temporary, asked, tuple(login.target for login in seeds), taken)
            ended_by_itself = True
        except PodiumError as error:
            ended_by_itself = not isinstance(error, TimedOut)
            raise
        finally:
            for login, seed in seeds.items():
                if ended_by_itself and _is_really_in(home, login.target):
                    _hand_back(login, home / login.target, seed, kit.clock.now())
                _take_away(home, login.target)
            shutil.rmtree(temporary, ignore_errors=True)


def sweep_homes(homes: Path, is_over: Callable[[str], bool]) -> None:
    """Remove the homes of runs that are over, and of all others what a killed Podium left in them.

    A home in use is let be.
    """
    for run in _folders(homes):
        over = is_over(run.name)
        for base in _folders(run):
            with suppress(NotPossibleNow, OSError), _only_one(base / LOCK):
                shutil.rmtree(base / "tmp", ignore_errors=True)
                if over:
                    shutil.rmtree(base, ignore_errors=True)
                else:
                    _sweep_logins(base / "home")
        with suppress(OSError):
            run.rmdir()


def _sweep_logins(home: Path) -> None:
    """Everything but conversations is laid anew by the next turn, logins among it."""
    for name in _login_names(home):
        _take_away(home, name)


def _real_folder(place: Path) -> None:
    """Make it a folder of its own. A link an agent laid there would lead our sweeping elsewhere."""
    try:
        if place.is_symlink() or not place.is_dir():
            place.unlink(missing_ok=True)
            place.mkdir(mode=0o700)
    except OSError as error:
        raise NotPossibleNow(
            f"the private home {str(place)!r} cannot be made ({error}); look at what stands there"
        ) from None


def _is_really_in(home: Path, name: str) -> bool:
    """Whether the way to a file in the home has no link in it: an agent may have laid one."""
    way = [home.joinpath(*Path(name).parts[: count + 1]) for count in range(len(Path(name).parts))]
    return not any(step.is_symlink() for step in way)


def _take_away(home: Path, name: str) -> None:
    """Remove a file of the home. A link on the way to it goes instead: what it leads to is not ours."""
    parts = Path(name).parts
    for count in range(1, len(parts) + 1):
        place = home.joinpath(*parts[:count])
        if place.is_symlink() or count == len(parts):
            _remove(place)
            return


def _remove(place: Path) -> None:
    """Remove whatever stands there, also a tree that was made unwritable."""
    try:
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place, onerror=_after_allowing)
        else:
            place.unlink(missing_ok=True)
    except OSError as error:
        raise NotPossibleNow(
            f"{str(place)!r} of an agent's private home cannot be removed ({error}); remove it"
        ) from None


def _after_allowing(function: Callable[[str], object], path: str, fault: object) -> None:
    """Go mod and others make their folders unwritable, and those cannot be removed."""
    for place in (Path(path).parent, Path(path)):
        if not place.is_symlink() and place.is_dir():
            place.chmod(0o700)
    if Path(path).is_dir() and not Path(path).is_symlink():
        shutil.rmtree(path)
    else:
        Path(path).unlink(missing_ok=True)


def _login_names(home: Path) -> list[str]:
    try:
        names = json.loads((home.parent / LOGINS).read_text())
    except (OSError, ValueError):
        return []
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def _folders(folder: Path) -> list[Path]:
    try:
        return [
            Path(entry.path) for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)
        ]
    except OSError:
        return []


def _read_session(session: str | None) -> tuple[int | None, str | None]:
    """In which home a conversation began, and what the CLI calls it."""
    if session is None:
        return None, None
    number, mark, own = session.partition(_MARK)
    return (int(number), own) if mark and number.isdecimal() else (1, session)


@contextmanager
def _free_home(run: Path, agent: str, number: int | None) -> Iterator[tuple[Path, int]]:
    """The home of that number, or the first that no other turn has."""
    for each in range(1, MOST_HOMES + 1) if number is None else (number,):
        base = run / (agent if each == 1 else f"{agent}.{each}")
        base.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _real_folder(base)
        with ExitStack() as held:
            try:
                held.enter_context(_only_one(base / LOCK))
            except NotPossibleNow:
                if number is None and each < MOST_HOMES:
                    continue
                raise
            yield base, each
            return


@contextmanager
def _only_one(path: Path) -> Iterator[None]:
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise NotPossibleNow(
                f"another turn is at work in {str(path.parent)!r}; wait for it"
            ) from None
        yield
    finally:
        os.close(handle)


def _sweep(folder: Path, keep: set[Path], inner: Path = Path()) -> None:
    """Remove everything that is not kept and not above something kept. Links are never followed."""
    for entry in os.scandir(folder):
        place = inner / entry.name
        real_folder = entry.is_dir(follow_symlinks=False)
        if place in keep and real_folder:
            continue
        if real_folder and any(place in kept.parents for kept in keep):
            _sweep(Path(entry.path), keep, place)
        else:
            _remove(Path(entry.path))


def copy_login(login: Login, home: Path) -> bytes | None:
    """Copy the login into a private home. None when the person has none."""
    try:
        with login.source.open("rb") as file:
            content = file.read(LARGEST_LOGIN_BYTES + 1)
    except OSError:
        return None
    if len(content) > LARGEST_LOGIN_BYTES:
        raise NotPossibleNow(f"{str(login.source)!r} is too large for a login; look at it")
    target = home / login.target
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # First its name, so that a copy a killed Podium leaves behind is found.
    names = sorted({*_login_names(home), login.target})
    write_private(home.parent / LOGINS, json.dumps(names).encode())
    write_private(target, content)
    return content


def _hand_back(login: Login, copy: Path, seed: bytes, now: datetime) -> None:
    """Take over refreshed tokens, when nothing else differs and nobody was quicker."""
    with suppress(OSError):
        found = _plain_content(copy)
        newer = None if found is None else refreshed(seed, found, login.refreshable, now)
        if newer is None:
            return
        target = login.source.resolve()
        if target.read_bytes() == seed:
            write_private(target, newer)


def _plain_content(path: Path) -> bytes | None:
    """What a plain file holds. Anything else an agent may have put there could keep us waiting."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode) or about.st_size > LARGEST_LOGIN_BYTES:
            return None
        return file.read(LARGEST_LOGIN_BYTES)
