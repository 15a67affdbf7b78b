"""Private homes: seeded with a login, swept of what was planted, and what may come back."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from contextlib import suppress
from pathlib import Path

import pytest

from podium.agents.deps import AgentDeps
from podium.agents.headless.home import CliLogin, home_off_loop, private_home, sweep_homes
from podium.core.errors import NotPossibleNow, RateLimited, TimedOut
from podium.core.turns import Reply, Turn
from podium.testing import (
    FakeConfinementProvider,
    FakeHookDoors,
    FakeLauncher,
    FixedClock,
    MemoryTranscripts,
)

TURN = Turn(run_id="run_1", step_key="ask#0", role="tester", prompt="go", workspace="/w")
BEFORE = {"account": "ann", "tokens": {"access": "old", "refresh": "r1"}, "expiry": 1}


RENEWED = {**BEFORE, "tokens": {"access": "new", "refresh": "r1"}, "expiry": 4_000_000_000}


@pytest.fixture
def deps(tmp_path: Path) -> AgentDeps:
    return AgentDeps(
        confinement_provider=FakeConfinementProvider(),
        launcher=FakeLauncher(),
        doors=FakeHookDoors(),
        transcripts=MemoryTranscripts(),
        clock=FixedClock(),
        hook_command=("hook",),
        homes=tmp_path / "homes",
        user_home=tmp_path / "user",
        environ={},
    )


@pytest.fixture
def login(deps: AgentDeps) -> CliLogin:
    source = deps.user_home / ".cli/auth.json"
    source.parent.mkdir(parents=True)
    source.write_text(json.dumps(BEFORE))
    return CliLogin(source, ".cli/auth.json", ("tokens.access", "expiry"))


def test_a_home_is_private_and_holds_a_copy_of_the_login(deps: AgentDeps, login: CliLogin) -> None:
    with private_home(deps, TURN, "gemini", logins=[login]) as home:
        copy = home.path / login.target
        assert json.loads(copy.read_text()) == BEFORE
        assert stat.S_IMODE(copy.stat().st_mode) == 0o600
        assert stat.S_IMODE(home.path.stat().st_mode) == 0o700
        assert home.logins == (login.target,)
        assert not home.path.is_relative_to(home.temporary)
    assert not copy.exists()


def test_a_person_without_a_login_has_none_copied(deps: AgentDeps) -> None:
    missing = CliLogin(deps.user_home / "nothing.json", "auth.json")
    with private_home(deps, TURN, "gemini", logins=[missing]) as home:
        assert home.logins == ()


def test_conversations_stay_and_everything_else_that_was_planted_goes(
    deps: AgentDeps, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("mine")
    with private_home(deps, TURN, "gemini", keep=(".cli/sessions",)) as home:
        home.write(".cli/sessions/one.jsonl", "talk")
        home.write(".cli/hooks.json", "planted")
        home.write(".bashrc", "planted")
        (home.path / "link").symlink_to(outside)
    with private_home(deps, TURN, "gemini", keep=(".cli/sessions",)) as home:
        left = {str(path.relative_to(home.path)) for path in home.path.rglob("*")}
        assert left == {".cli", ".cli/sessions", ".cli/sessions/one.jsonl"}
    assert (outside / "precious").read_text() == "mine"


def test_a_link_in_the_place_of_conversations_is_not_kept(deps: AgentDeps, tmp_path: Path) -> None:
    with private_home(deps, TURN, "gemini", keep=("sessions",)) as home:
        (home.path / "sessions").symlink_to(tmp_path)
    with private_home(deps, TURN, "gemini", keep=("sessions",)) as home:
        assert list(home.path.iterdir()) == []
    assert tmp_path.exists()


def test_refreshed_tokens_come_back(deps: AgentDeps, login: CliLogin) -> None:
    with private_home(deps, TURN, "gemini", logins=[login]) as home:
        (home.path / login.target).write_text(json.dumps(RENEWED))
    assert json.loads(login.source.read_text()) == RENEWED
    assert stat.S_IMODE(login.source.stat().st_mode) == 0o600


def test_tokens_come_back_from_a_turn_that_ended_in_trouble_of_its_own(
    deps: AgentDeps, login: CliLogin
) -> None:
    renew_and_end(deps, login, RateLimited("too much"))
    assert json.loads(login.source.read_text()) == RENEWED


@pytest.mark.parametrize("end", [asyncio.CancelledError(), TimedOut("late"), OSError("crash")])
def test_no_tokens_come_back_from_a_turn_that_was_broken_off(
    deps: AgentDeps, login: CliLogin, end: BaseException
) -> None:
    renew_and_end(deps, login, end)
    assert json.loads(login.source.read_text()) == BEFORE
    assert not list(deps.homes.rglob("auth.json"))


def renew_and_end(deps: AgentDeps, login: CliLogin, end: BaseException) -> None:
    with (
        suppress(type(end)),
        private_home(deps, TURN, "gemini", logins=[login]) as home,
    ):
        (home.path / login.target).write_text(json.dumps(RENEWED))
        raise end


async def test_how_a_turn_ended_is_known_off_the_loop_too(deps: AgentDeps, login: CliLogin) -> None:
    with suppress(asyncio.CancelledError):
        async with home_off_loop(deps, TURN, "gemini", logins=[login]) as home:
            (home.path / login.target).write_text(json.dumps(RENEWED))
            raise asyncio.CancelledError
    assert json.loads(login.source.read_text()) == BEFORE


@pytest.mark.parametrize(
    "after",
    [
        {**RENEWED, "account": "mallory"},
        {**RENEWED, "tokens": {"access": "new", "refresh": "r2"}},
        {**RENEWED, "helper": "/bin/evil"},
        {**RENEWED, "expiry": "4000000000"},
        {**RENEWED, "tokens": "gone"},
        [1],
        "not even JSON",
        None,
    ],
)
def test_a_login_that_differs_in_anything_else_stays_as_it_was(
    deps: AgentDeps, login: CliLogin, after: object
) -> None:
    with private_home(deps, TURN, "gemini", logins=[login]) as home:
        copy = home.path / login.target
        if after is None:
            copy.unlink()
        else:
            copy.write_text(after if isinstance(after, str) else json.dumps(after))
    assert json.loads(login.source.read_text()) == BEFORE


def test_a_login_that_was_swapped_for_a_link_does_not_come_back(
    deps: AgentDeps, login: CliLogin, tmp_path: Path
) -> None:
    other = tmp_path / "other.json"
    other.write_text(json.dumps(RENEWED))
    with private_home(deps, TURN, "gemini", logins=[login]) as home:
        (home.path / login.target).unlink()
        (home.path / login.target).symlink_to(other)
    assert json.loads(login.source.read_text()) == BEFORE


def test_a_login_that_a_person_renewed_meanwhile_is_not_overwritten(
    deps: AgentDeps, login: CliLogin
) -> None:
    with private_home(deps, TURN, "gemini", logins=[login]) as home:
        (home.path / login.target).write_text(json.dumps(RENEWED))
        login.source.write_text(json.dumps({**BEFORE, "expiry": 3}))
    assert json.loads(login.source.read_text())["expiry"] == 3


def test_turns_at_the_same_time_have_homes_of_their_own_and_keep_their_conversations(
    deps: AgentDeps,
) -> None:
    with (
        private_home(deps, TURN, "gemini") as one,
        private_home(deps, TURN, "gemini") as two,
        private_home(deps, TURN, "claude") as other,
    ):
        assert len({one.path, two.path, other.path}) == 3
    begun = two.signed(Reply(text="", session="s-1"))
    again = TURN.model_copy(update={"session": begun.session})
    with private_home(deps, again, "gemini") as home:
        assert (home.path, home.turn.session) == (two.path, "s-1")
    assert one.signed(Reply(text="", session="s-2")).session == "s-2"


def test_a_conversation_that_is_at_work_is_not_gone_on_with(deps: AgentDeps) -> None:
    again = TURN.model_copy(update={"session": "s-2"})
    with (
        private_home(deps, TURN, "gemini"),
        pytest.raises(NotPossibleNow, match="another turn"),
        private_home(deps, again, "gemini"),
    ):
        pass


def test_the_homes_of_runs_that_are_over_are_removed(deps: AgentDeps) -> None:
    with private_home(deps, TURN, "gemini", keep=("sessions",)) as home:
        home.write("sessions/one", "talk")
    sweep_homes(deps.homes, lambda run_id: False)
    assert (home.path / "sessions/one").exists()
    sweep_homes(deps.homes, lambda run_id: run_id == "run_1")
    assert list(deps.homes.iterdir()) == []


def test_a_login_that_a_killed_podium_left_behind_is_removed(
    deps: AgentDeps, login: CliLogin
) -> None:
    with private_home(deps, TURN, "gemini", keep=("sessions",), logins=[login]) as home:
        home.write("sessions/one", "talk")
        copy = home.path / login.target
        sweep_homes(deps.homes, lambda run_id: True)
        assert copy.exists()  # in use
        left = copy.read_bytes()
    copy.parent.mkdir(exist_ok=True)
    copy.write_bytes(left)
    sweep_homes(deps.homes, lambda run_id: False)
    assert not copy.exists()
    assert (home.path / "sessions/one").exists()
    assert login.source.exists()


def test_a_link_in_the_way_of_a_login_never_costs_the_person_theirs(
    deps: AgentDeps, login: CliLogin
) -> None:
    with private_home(deps, TURN, "gemini", logins=[login]) as home:
        (home.path / login.target).unlink()
        (home.path / ".cli").rmdir()
        (home.path / ".cli").symlink_to(login.source.parent)
    assert json.loads(login.source.read_text()) == BEFORE
    assert not (home.path / ".cli").is_symlink()


def test_a_folder_in_the_place_of_a_login_is_removed(deps: AgentDeps, login: CliLogin) -> None:
    with private_home(deps, TURN, "gemini", logins=[login]) as home:
        (home.path / login.target).unlink()
        (home.path / login.target / "deep").mkdir(parents=True)
    assert not (home.path / login.target).exists()


def test_what_was_made_unwritable_is_removed_all_the_same(deps: AgentDeps) -> None:
    with private_home(deps, TURN, "gemini") as home:
        cache = home.path / "go/pkg/mod"
        cache.mkdir(parents=True)
        (cache / "file").write_text("x")
        cache.chmod(0o500)
    with private_home(deps, TURN, "gemini") as home:
        assert list(home.path.iterdir()) == []


def test_agents_of_like_names_do_not_share_a_home(deps: AgentDeps) -> None:
    with private_home(deps, TURN, "gpt.4") as one, private_home(deps, TURN, "gpt-4") as two:
        assert one.path != two.path
        assert one.number == two.number == 1


@pytest.mark.parametrize("place", ["home", "tmp", "."])
def test_a_home_that_was_swapped_for_a_link_costs_nobody_anything(
    deps: AgentDeps, tmp_path: Path, place: str
) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "precious").write_text("mine")
    with private_home(deps, TURN, "gemini") as home:
        base = home.path.parent
    swapped = base if place == "." else base / place
    if swapped.exists():
        swapped.rename(tmp_path / "away")
    swapped.symlink_to(victim)
    with private_home(deps, TURN, "gemini") as home:
        assert not home.path.is_symlink()
    assert (victim / "precious").read_text() == "mine"


def test_a_pipe_in_the_place_of_a_login_keeps_nobody_waiting(
    deps: AgentDeps, login: CliLogin
) -> None:
    with private_home(deps, TURN, "gemini", logins=[login]) as home:
        (home.path / login.target).unlink()
        os.mkfifo(home.path / login.target)
    assert json.loads(login.source.read_text()) == BEFORE


@pytest.mark.parametrize(
    "tokens",
    [
        {"access": "other-make-0123456789abcdef"},
        {"access": "sk-tok-" + "x" * 900},
        {"access": "sk-t"},
    ],
)
def test_a_token_of_another_make_does_not_come_back(
    deps: AgentDeps, tokens: dict[str, str]
) -> None:
    source = deps.user_home / "auth.json"
    source.parent.mkdir(parents=True)
    before = {"access": "sk-tok-0123456789abcdef", "expiry": 10}
    source.write_text(json.dumps(before))
    own = CliLogin(source, "auth.json", ("access", "expiry"))
    for after in ({**before, **tokens, "expiry": 11}, {**before, "expiry": 9}):
        with private_home(deps, TURN, "gemini", logins=[own]) as home:
            (home.path / "auth.json").write_text(json.dumps(after))
        assert json.loads(source.read_text()) == before
