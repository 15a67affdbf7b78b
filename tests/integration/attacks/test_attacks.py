"""Nothing gets through: every attack on the default layout, as an ordinary user and as root."""

from __future__ import annotations

import pytest

from tests.integration.attacks.attack import GROUPS, Attack
from tests.integration.attacks.cases import ATTACKS
from tests.integration.attacks.cases.state import BY_FILES, BY_NAMES
from tests.integration.attacks.layouts import LAYOUTS, Nothing
from tests.integration.attacks.runner import run_attacks
from tests.integration.attacks.trial import Outcome
from tests.integration.attacks.users import ordinary_python, outcomes, place, users_here, who
from tests.integration.workspaces.rig import needs_bwrap
from tests.soaking import in_soak

pytestmark = [needs_bwrap(), pytest.mark.timeout(600)]


def _ids(group: str | None = None) -> list[str]:
    return [attack.id for attack in ATTACKS if group in (None, attack.group)]


def _run(user: str, layout: str, group: str | None = None) -> list[Outcome]:
    if user not in users_here():
        pytest.skip("attacks as root are for root to run")
    if user != who() and not ordinary_python():
        pytest.skip("an ordinary user may start no Python of this version here")
    ids = _ids(group)
    found = list(outcomes(user, layout, ids))
    assert [outcome.attack for outcome in found] == ids
    return found


def _through(found: list[Outcome]) -> dict[str, tuple[str, ...]]:
    return {outcome.attack: outcome.through for outcome in found if outcome.through}


@pytest.mark.parametrize(
    ("group", "user"),
    [
        *((group, "ordinary") for group in GROUPS),
        # What root could do beyond others is a matter of these; the rest is held in the same way for both.
        *((group, "root") for group in ("files", "escapes")),
        *(in_soak(group, "root") for group in ("git", "shell", "network")),
    ],
)
def test_no_attack_gets_through_the_default_layout(group: str, user: str) -> None:
    found = _run(user, "default", group)
    assert _through(found) == {}
    assert not any(outcome.skipped for outcome in found)
    print(f"\n{group}, {user}: 0 of {len(found)} through")


@pytest.mark.parametrize(
    ("layout", "ids"),
    [("firewall", None), ("unpinned", None), ("ungated", BY_FILES), ("policed", BY_NAMES)],
)
def test_each_layer_alone_keeps_podiums_state(layout: str, ids: tuple[str, ...] | None) -> None:
    """Policy, import gate, confinement, and all but the import gate. The default layout above is all but the policy."""
    if not ordinary_python():
        pytest.skip("an ordinary user may start no Python of this version here")
    found = list(outcomes("ordinary", layout, ids or _ids("state")))
    assert _through(found) == {}


_OF_TERMINALS = (
    *("E12", "E13", "E50", "E55", "E56", "E57", "E59", "E60", "E62", "E63", "E74"),
    *("F03", "F40", "N17", "N18", "N30", "N43"),
)
"""What is different where a program has a terminal, and who holds it is no child of Podium."""


def test_no_attack_gets_through_on_a_terminal() -> None:
    if not ordinary_python():
        pytest.skip("an ordinary user may start no Python of this version here")
    found = list(outcomes("ordinary", "terminal", _OF_TERMINALS))
    assert len(found) == len(_OF_TERMINALS)
    assert _through(found) == {}


_WORK = """
set -e
echo work > src/new; git add src/new; git commit -qm work; git log -1 --format=%s
curl -sS --max-time 5 http://127.0.0.1:@MODEL@/; echo
curl -sS --max-time 5 --noproxy '' -o /dev/null -w '%{http_code}' http://127.0.0.1:@ALLOWED@/; echo
python3 -c 'import tempfile; tempfile.TemporaryFile(); print("temporary")'
"""


@pytest.mark.parametrize("layout", ["default", "mounts", "terminal", "terminal-landlock"])
async def test_what_the_agent_was_given_works_in_the_same_layout(layout: str) -> None:
    attack = Attack("W00", "git", "ordinary work", (_WORK,))
    found = [outcome async for outcome in run_attacks([attack], layout, place())]
    assert found[0].output.split() == ["work", "ok", "302", "temporary"]
    assert found[0].delivered
    assert found[0].through == ()


def test_there_are_enough_attacks_of_each_kind() -> None:
    assert len(_ids()) == len(set(_ids())) >= 160
    wanted = {"git": 40, "files": 25, "escapes": 35, "network": 20, "shell": 40}
    for group, least in wanted.items():
        assert len(_ids(group)) >= least


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("user", ["ordinary", "root"])
def test_every_attack_is_live_where_nothing_protects(user: str) -> None:
    found = _run(user, Nothing.name)
    excused = {attack.id for attack in ATTACKS if user in attack.dead}
    held = {outcome.attack for outcome in found if not outcome.through and not outcome.skipped}
    assert held <= excused


_SHOWN = {"landlock": {"E72", "N15"}, "terminal-landlock": {"E72", "N15"}}
"""Landlock cannot take lists of sockets and processes out of /proc: what is read there cannot be reached."""


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("user", ["ordinary", "root"])
@pytest.mark.parametrize("layout", ["mounts", "landlock", "terminal", "terminal-landlock"])
def test_no_attack_gets_through_another_layout(layout: str, user: str) -> None:
    assert _through(_run(user, layout)).keys() <= _SHOWN.get(layout, set())


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("layout", ["trusting", "shared", "ungated", "policed"])
def test_weaker_layouts_let_attacks_through(layout: str) -> None:
    assert layout in {one.name for one in LAYOUTS}
    found = _through(_run("ordinary", layout))
    assert found
    print(f"\n{layout}: {len(found)} through")
