"""Private homes: a CLI gets a home of its own for each run, seeded with a copy of its login, which may come back refreshed.

What it plants there never comes back, with one exception: a login whose tokens it refreshed,
after a look at it. A CLI and the commands of its agent write with the same rights, so which of them
wrote a file cannot be told: what comes back must be what a refresh makes of this very login. Work on
the files is kept off the event loop.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from podium.agents.deps import AgentDeps
from podium.agents.private_files import (
    make_folder,
    open_within,
    plain_name,
    real_folder,
    remove,
    sweep,
    take_away,
    write_within,
)
from podium.core.errors import NotPossibleNow, PodiumError, TimedOut
from podium.core.model import Json
from podium.core.turns import Reply, Turn
from podium.platform import make_private_folder
from podium.platform.atomic_write import atomic_write
from podium.platform.completion import in_thread
from podium.platform.file_lock import take_file_lock

_TOKEN_HEAD = 6
"""Tokens of one make begin alike."""
_SIGN_ENDS = re.compile(r"[-_./]")
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=|:-]{1,20000}")
_MILLISECONDS = 1e11
"""From here on a moment is counted in milliseconds."""
_SKEW = timedelta(minutes=5)
_SAME_ACCOUNT = ("iss", "sub", "aud", "azp", "client_id", "scp", "email")
_OF_OPENAI = "https://api.openai.com/auth"
_SAME_OPENAI_ACCOUNT = ("chatgpt_account_id", "chatgpt_user_id", "user_id")


def refreshed(
    seed: bytes, content: bytes, refreshable: Sequence[str], now: datetime
) -> bytes | None:
    """The seed with its new tokens. None: there are none, or they are not what a refresh makes.

    Nothing but the `refreshable` values may differ; each must be the next of its kind, for the same
    account; an access token must be among them; and something must say that it expires later.
    """
    if content == seed:
        return None
    try:
        before, after = json.loads(seed), json.loads(content)
    except (ValueError, RecursionError):
        return None
    changed = [name for name in refreshable if _value(before, name) != _value(after, name)]
    pairs = {name: (_value(before, name), _value(after, name)) for name in changed}
    if not _brings_access(changed) or not all(_may_follow(*pair, now) for pair in pairs.values()):
        return None
    if not any(_expires_later(*pair) for pair in pairs.values()):
        return None
    for name, (_, new) in pairs.items():
        _put(before, name, new)
    return json.dumps(before, indent=2).encode() if before == after else None


def _brings_access(changed: Sequence[str]) -> bool:
    """A refresh is made to get one. A refresh token alone would only change hands."""
    return any(name.rpartition(".")[2].startswith("access") for name in changed)


def _may_follow(old: Json, new: Json, now: datetime) -> bool:
    """Return whether a value is the next of its kind: a token for the same account, a later time that can be."""
    if type(old) is not type(new) or isinstance(new, dict | list | bool) or new is None:
        return False
    if not isinstance(old, str):
        expires = _timestamp(new)
        return expires is not None and new > old and now < expires
    written, rewritten = _date(old), _date(new)
    if written is not None:
        return rewritten is not None and written < rewritten < now + _SKEW
    claims, renewed = _claims(old), _claims(new)
    if claims is not None:
        return renewed is not None and _is_renewed(claims, renewed, now)
    return renewed is None and _made_alike(old, new)


def _made_alike(old: str, new: str) -> bool:
    """Tokens that say nothing: only their make can be compared."""
    match = _SIGN_ENDS.search(old[:_TOKEN_HEAD])
    head = match.end() if match else _TOKEN_HEAD
    return (
        (old[:head] == new[:head] or len(old) < 2 * _TOKEN_HEAD)
        and len(old) // 2 <= len(new) <= 2 * len(old) + 64
        and _TOKEN.fullmatch(new) is not None
    )


def _is_renewed(old: dict[str, Json], new: dict[str, Json], now: datetime) -> bool:
    """Return whether the claims name the same account and are younger."""
    of_openai, of_openai_now = old.get(_OF_OPENAI), new.get(_OF_OPENAI)
    if isinstance(of_openai, dict):
        same_account = _same(of_openai, of_openai_now, _SAME_OPENAI_ACCOUNT)
    else:
        same_account = of_openai == of_openai_now
    expires, issued = _timestamp(new.get("exp")), _timestamp(new.get("iat"))
    if "exp" in old and (expires is None or expires <= now):
        return False
    if "iat" in old and (issued is None or issued > now + _SKEW):
        return False
    later = all(_number(new.get(name)) >= _number(old.get(name)) for name in ("exp", "iat"))
    return same_account and later and _same(old, new, _SAME_ACCOUNT)


def _same(old: dict[str, Json], new: Json, names: Sequence[str]) -> bool:
    return isinstance(new, dict) and all(old.get(name) == new.get(name) for name in names)


def _expires_later(old: Json, new: Json) -> bool:
    if isinstance(old, str) and isinstance(new, str):
        claims, renewed = _claims(old) or {}, _claims(new) or {}
        return _number(renewed.get("exp")) > _number(claims.get("exp")) > 0
    return _number(new) > _number(old) > 0


def _claims(token: str) -> dict[str, Json] | None:
    """Return the claims of a JWT. Its signature only its issuer can check."""
    parts = token.split(".")
    if len(parts) != 3 or len(token) > 20_000:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, RecursionError):
        return None
    return claims if isinstance(claims, dict) else None


def _timestamp(value: Json) -> datetime | None:
    seconds = _number(value)
    if seconds <= 0:
        return None
    try:
        return datetime.fromtimestamp(
            seconds / 1000 if seconds > _MILLISECONDS else seconds, tz=UTC
        )
    except (ValueError, OverflowError, OSError):
        return None


def _number(value: Json) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def _date(text: str) -> datetime | None:
    """A moment in words, such as codex notes down when it refreshed."""
    try:
        date = datetime.fromisoformat(text[:64])
    except ValueError:
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def _value(data: Json, dotted: str) -> Json:
    for name in dotted.split("."):
        if not isinstance(data, dict):
            return None
        data = data.get(name)
    return data


def _put(data: Json, dotted: str, value: Json) -> None:
    *path, last = dotted.split(".")
    for name in path:
        data = data[name]
    data[last] = value


MAX_LOGIN_BYTES = 1_000_000
MAX_HOMES = 100
LOCK = "lock"
LOGINS = "logins.json"
"""Names the files in the home that are copies of logins."""
_SEPARATOR = "~"


@dataclass(frozen=True)
class CliLogin:
    """A file that keeps a CLI logged in."""

    source: Path
    """The person's own file."""
    target: str
    """Path of the copy, from the private home on."""
    refreshable: tuple[str, ...] = ()
    """Dotted names of the values that may come back, such as `tokens.access_token`. The rest must be as it was."""


@dataclass(frozen=True)
class HomeFolders:
    """Private folders of one program: how files are laid in them, and by what it finds them."""

    path: Path
    temporary: Path
    """For `TMPDIR`. Not above the home's own files: codex refuses to work beneath it."""

    def clear(self, *keep: str) -> None:
        """Have both folders, and in the home nothing but these places of it. The program must have ended."""
        real_folder(self.path)
        real_folder(self.temporary)
        sweep(self.path, {Path(name) for name in keep})

    def make(self, name: str) -> None:
        """Have a folder of this name in the home."""
        make_folder(self.path, name)

    def write(self, name: str, content: str) -> Path:
        """Lay a file of settings, private and new."""
        return write_within(self.path, name, content.encode())

    def write_json(self, name: str, content: Json) -> Path:
        return self.write(name, json.dumps(content, indent=1))

    @property
    def folders(self) -> tuple[Path, Path]:
        """The folders that the CLI has to write to beside its workspace."""
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
class Home(HomeFolders):
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
        return reply.model_copy(update={"session": f"{self.number}{_SEPARATOR}{reply.session}"})


@contextmanager
def private_home(
    deps: AgentDeps,
    turn: Turn,
    agent: str,
    *,
    keep: Sequence[str] = (),
    logins: Sequence[CliLogin] = (),
) -> Iterator[Home]:
    """A home of the run's agent, with nothing in it but `keep` of earlier turns and the logins.

    `keep` are the places, from the home on, of its conversations. One turn at a time may have a
    home: another gets the next one, unless it goes on with a conversation that is at work. On
    leaving, logins whose tokens were refreshed are handed back and the copies removed. From a turn
    that was cancelled or ran out of time, in which the CLI was ended at work, none comes back.
    """
    number, session = _read_session(turn.session)
    with _free_home(deps.homes / plain_name(turn.run_id), plain_name(agent), number) as (
        base,
        taken,
    ):
        home, temporary = base / "home", base / "tmp"
        remove(temporary)
        HomeFolders(home, temporary).clear(*keep)
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
                if ended_by_itself:
                    _hand_back(login, home, seed, deps.clock.now())
                take_away(home, login.target)
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
        take_away(home, name)


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
    number, separator, own = session.partition(_SEPARATOR)
    return (int(number), own) if separator and number.isdecimal() else (1, session)


@contextmanager
def _free_home(run: Path, agent: str, number: int | None) -> Iterator[tuple[Path, int]]:
    """The home of that number, or the first that no other turn has."""
    for slot in range(1, MAX_HOMES + 1) if number is None else (number,):
        base = run / (agent if slot == 1 else f"{agent}.{slot}")
        make_private_folder(base.parent)
        real_folder(base)
        with ExitStack() as held:
            try:
                held.enter_context(_only_one(base / LOCK))
            except NotPossibleNow:
                if number is None and slot < MAX_HOMES:
                    continue
                raise
            yield base, slot
            return


@contextmanager
def _only_one(path: Path) -> Iterator[None]:
    try:
        handle = take_file_lock(path)
    except BlockingIOError:
        raise NotPossibleNow(
            f"another turn is running in {str(path.parent)!r}; wait until it ends"
        ) from None
    try:
        yield
    finally:
        os.close(handle)


def copy_login(login: CliLogin, home: Path) -> bytes | None:
    """Copy the login into a private home. None when the person has none."""
    try:
        with login.source.open("rb") as file:
            content = file.read(MAX_LOGIN_BYTES + 1)
    except OSError:
        return None
    if len(content) > MAX_LOGIN_BYTES:
        raise NotPossibleNow(f"{str(login.source)!r} is too large for a login file; check it")
    # First its name, so that a copy a killed Podium leaves behind is found.
    names = sorted({*_login_names(home), login.target})
    atomic_write(home.parent / LOGINS, json.dumps(names).encode())
    write_within(home, login.target, content)
    return content


def _hand_back(login: CliLogin, home: Path, seed: bytes, now: datetime) -> None:
    """Take over refreshed tokens, when nothing else differs and nobody was quicker."""
    with suppress(OSError):
        content = _plain_content(home, login.target)
        newer = None if content is None else refreshed(seed, content, login.refreshable, now)
        if newer is None:
            return
        target = login.source.resolve()
        if target.read_bytes() == seed:
            atomic_write(target, newer)


def _plain_content(home: Path, name: str) -> bytes | None:
    """Return the content of a plain file of the home. Anything else an agent may have put there could keep us waiting."""
    handle = open_within(home, name)
    if handle is None:
        return None
    with os.fdopen(handle, "rb") as file:
        too_large = os.fstat(handle).st_size > MAX_LOGIN_BYTES
        return None if too_large else file.read(MAX_LOGIN_BYTES)


@asynccontextmanager
async def home_off_loop(
    deps: AgentDeps,
    turn: Turn,
    agent: str,
    *,
    keep: Sequence[str] = (),
    logins: Sequence[CliLogin] = (),
) -> AsyncIterator[Home]:
    """A `private_home` that is swept, seeded and left in a thread."""
    home = private_home(deps, turn, agent, keep=keep, logins=logins)
    held = ExitStack()
    try:
        yield await in_thread(held.enter_context, home)
    except BaseException as error:
        # How the turn ended matters for what comes back from the home.
        await in_thread(held.__exit__, type(error), error, error.__traceback__)
        raise
    await in_thread(held.close)
