"""`kill -9` anywhere in a run of a playbook: resumed, it is the same conversation, without gap or repeat."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.agents import clis
from tests.integration.playbook.killing.kill_harness import (
    PAIRS,
    ForkServer,
    Kill,
    KillHarness,
    Performance,
    RoleAgent,
    fork_server,
)
from tests.integration.playbook.killing.run_checks import check, check_acts
from tests.integration.playbook.playbook_harness import of_type
from tests.soaking import in_soak

MAX_KILLS = 200
COMMAND, CHECK = 4, 8
"""Which of the permitted calls is the command that must not be done twice, and which the playbook's check."""


@pytest.fixture(scope="module")
def warm() -> Iterator[ForkServer]:
    with fork_server() as warmed:
        yield warmed


@pytest.fixture(scope="module")
def peaceful(warm: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> Performance:
    """The run as it is when nobody kills it."""
    played = KillHarness(warm, tmp_path_factory.mktemp("peaceful")).play()
    assert played.lives[0].code == 0, played.lives[0].err
    return played


@pytest.fixture
def kill_harness(warm: ForkServer, tmp_path: Path) -> KillHarness:
    return KillHarness(warm, tmp_path)


def check_proofs(kill_harness: KillHarness, run_id: str) -> None:
    """Receipts hold, and the trace happens again."""
    verified = kill_harness.command("receipts", "verify")
    assert verified.code == 0, verified.out + verified.err
    replayed = kill_harness.command("replay", run_id, "--json")
    assert replayed.code == 0, replayed.out + replayed.err
    assert json.loads(replayed.out)["verbatim"]


@pytest.mark.parametrize(("kills", "died"), [(4, 4), in_soak(MAX_KILLS, 21)], ids=["four", "all"])
def test_a_run_killed_between_every_two_kinds_of_events_goes_on_as_if_nothing_was(
    kill_harness: KillHarness, peaceful: Performance, kills: int, died: int
) -> None:
    played = kill_harness.play(*[PAIRS] * kills)
    assert sum(life.died for life in played.lives) >= died
    check(played, peaceful)
    check_proofs(kill_harness, played.run_id)


@pytest.mark.soak
def test_a_command_that_was_not_begun_is_asked_about_and_then_run(
    kill_harness: KillHarness, peaceful: Performance
) -> None:
    played = kill_harness.play(Kill("after tool_requested", COMMAND))
    check(played, peaceful)
    (resolved,) = of_type(played.trace, "tool_resolved")
    assert not resolved["happened"]
    check_proofs(kill_harness, played.run_id)


@pytest.mark.soak
def test_a_command_that_had_ended_is_asked_about_and_not_run_again(
    kill_harness: KillHarness, peaceful: Performance
) -> None:
    # Of those before it one failed.
    played = kill_harness.play(Kill("before tool_completed", COMMAND - 1))
    check(played, peaceful)
    (resolved,) = of_type(played.trace, "tool_resolved")
    assert resolved["happened"]
    check_proofs(kill_harness, played.run_id)


@pytest.mark.soak
def test_a_patch_of_two_files_that_was_killed_after_the_first_is_finished(
    kill_harness: KillHarness, peaceful: Performance
) -> None:
    played = kill_harness.play(Kill("put version.txt", 1))
    assert played.lives[0].died
    check(played, peaceful)
    assert played.doubts == []


@pytest.mark.soak
def test_that_a_person_saw_a_check_run_does_not_prove_what_it_found(
    kill_harness: KillHarness,
) -> None:
    kill_harness.checks_ran = True
    played = kill_harness.play(Kill("after tool_requested", CHECK))
    (resolved,) = of_type(played.trace, "tool_resolved")
    assert resolved["happened"]
    (ended,) = of_type(played.trace, "playbook_ended")
    assert [item["exit_code"] for item in ended["criteria"]] == [0]
    check_proofs(kill_harness, played.run_id)


@pytest.mark.soak
def test_a_run_that_was_killed_when_it_had_ended_has_a_whole_trace(
    kill_harness: KillHarness, peaceful: Performance
) -> None:
    played = kill_harness.play(Kill("after run_succeeded", 1))
    assert played.lives[0].died
    check(played, peaceful)
    check_proofs(kill_harness, played.run_id)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("series", ["after", "before", "acting"])
def test_every_place_to_be_killed_at(
    warm: ForkServer, peaceful: Performance, tmp_path: Path, series: str
) -> None:
    for number in range(1, MAX_KILLS):
        folder = tmp_path / str(number)
        folder.mkdir()
        kill_harness = KillHarness(warm, folder)
        played = kill_harness.play(Kill(series, number))
        check(played, peaceful)
        check_proofs(kill_harness, played.run_id)
        if not played.lives[0].died:
            break
    assert number > 10


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_turn_of_the_gemini_cli_without_hands_is_asked_again_and_repeats_no_call(
    warm: ForkServer, tmp_path: Path
) -> None:
    role_agent = RoleAgent("gemini", "gemini-2.5-flash", clis.gemini(), "mcp_podium_")

    def kill_harness(name: str) -> KillHarness:
        (tmp_path / name).mkdir()
        return KillHarness(warm, tmp_path / name, role_agent)

    peaceful = kill_harness("peaceful").play()
    life = peaceful.lives[0]
    assert life.code == 0, life.err
    for event, times in Counter(life.durable).items():
        for number in range(1, times + 1 if event.startswith("tool_") else 1):
            killed = kill_harness(f"{event}-{number}").play(Kill(f"after {event}", number))
            assert killed.lives[0].died
            check_acts(killed, peaceful)
