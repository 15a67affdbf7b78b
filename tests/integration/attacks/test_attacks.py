"""Nothing gets through: every attack on the default layout, and some of each kind on every other."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.integration.attacks.attack import GROUPS, Attack
from tests.integration.attacks.cases import ATTACKS
from tests.integration.attacks.cases.state import BY_FILES, BY_NAMES
from tests.integration.attacks.layouts import LAYOUTS, Nothing
from tests.integration.attacks.runner import run_attacks
from tests.integration.attacks.trial import Outcome
from tests.integration.attacks.users import ordinary_python, outcomes, place, users_here, who
from tests.integration.workspaces.workspace_harness import needs_bwrap
from tests.soaking import in_soak

pytestmark = [needs_bwrap(), pytest.mark.timeout(600)]


def _ids(group: str | None = None) -> list[str]:
    return [attack.id for attack in ATTACKS if group in (None, attack.group)]


def _run(user: str, layout: str, ids: Sequence[str], *, together: int = 1) -> list[Outcome]:
    if user not in users_here():
        pytest.skip("attacks as root are for root to run")
    if user != who() and not ordinary_python():
        pytest.skip("an ordinary user may start no Python of this version here")
    found = list(outcomes(user, layout, ids, together=together))
    assert sorted(outcome.attack for outcome in found) == sorted(ids)
    return found


def _through(found: list[Outcome]) -> dict[str, tuple[str, ...]]:
    return {outcome.attack: outcome.through for outcome in found if outcome.through}


@pytest.mark.parametrize("group", GROUPS)
def test_no_attack_of_one_agent_that_tries_most_gets_through_the_default_layout(group: str) -> None:
    """Two of three that need no commit, and of the others every fifth: such an attack has to be tried alone."""
    own = [attack for attack in ATTACKS if attack.group == group]
    alone = [attack.id for attack in own if attack.delivers]
    beside = [attack.id for attack in own if not attack.delivers]
    found = _run("ordinary", "default", beside[::3] + beside[1::3] + alone[::5], together=20)
    assert _through(found) == {}
    assert not any(outcome.skipped for outcome in found)


@pytest.mark.soak
@pytest.mark.parametrize("user", ["ordinary", "root"])
@pytest.mark.parametrize("group", GROUPS)
def test_no_attack_gets_through_the_default_layout(group: str, user: str) -> None:
    found = _run(user, "default", _ids(group))
    assert _through(found) == {}
    assert not any(outcome.skipped for outcome in found)
    print(f"\n{group}, {user}: 0 of {len(found)} through")


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("layout", "ids"),
    [
        ("firewall", BY_FILES),
        ("unpinned", ("P01", "P05", "P07", "P20", "P40")),
        ("ungated", BY_FILES),
        ("policed", ("P01", "P07", "P08", "P12")),
        in_soak("firewall", None),
        in_soak("unpinned", None),
        in_soak("policed", BY_NAMES),
    ],
)
def test_every_layer_alone_keeps_podiums_state(layout: str, ids: tuple[str, ...] | None) -> None:
    """Policy, import gate, confinement, and all but the import gate. The default layout above is all but the policy."""
    assert _through(_run("ordinary", layout, ids or _ids("state"), together=20)) == {}


_WORK = """
set -e
echo work > src/new; git add src/new; git commit -qm work; git log -1 --format=%s
curl -sS --max-time 5 http://127.0.0.1:@MODEL@/; echo
curl -sS --max-time 5 --noproxy '' -o /dev/null -w '%{http_code}' http://127.0.0.1:@ALLOWED@/; echo
python3 -c 'import tempfile; tempfile.TemporaryFile(); print("temporary")'
"""

_OF_EVERY_KIND = ("G01", "F03", "F40", "E01", "E12", "E13", "N17", "N18", "N30", "S01", "P07")
_OF_TERMINALS = ("E55", "E57", "E59", "E60", "E62", "E63")
"""What is different where a program has a terminal, and who holds it is no child of Podium."""


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("layout", "ids"),
    [
        ("default", _OF_EVERY_KIND),
        ("mounts", _OF_EVERY_KIND),
        ("landlock", _OF_EVERY_KIND),
        ("terminal", _OF_TERMINALS),
        ("terminal-landlock", _OF_TERMINALS),
    ],
)
async def test_a_layout_holds_attacks_and_lets_work_be_done(
    layout: str, ids: tuple[str, ...]
) -> None:
    """As whoever runs the suite: as root where that is root."""
    work = Attack("W00", "git", "ordinary work", (_WORK,))
    attacks = [work, *(attack for attack in ATTACKS if attack.id in ids)]
    found = [outcome async for outcome in run_attacks(attacks, layout, place(), together=20)]
    assert found[0].output.split() == ["work", "ok", "302", "temporary"]
    assert found[0].delivered
    assert len(found) == 1 + len(ids)
    assert _through(found) == {}


def test_there_are_enough_attacks_of_every_kind() -> None:
    assert len(_ids()) == len(set(_ids())) >= 160
    wanted = {"git": 40, "files": 25, "escapes": 35, "network": 20, "shell": 40}
    for group, least in wanted.items():
        assert len(_ids(group)) >= least


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("user", ["ordinary", "root"])
def test_every_attack_is_live_where_nothing_protects(user: str) -> None:
    found = _run(user, Nothing.name, _ids())
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
    assert _through(_run(user, layout, _ids())).keys() <= _SHOWN.get(layout, set())


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("layout", ["trusting", "shared", "ungated", "policed"])
def test_weaker_layouts_let_attacks_through(layout: str) -> None:
    assert layout in {one.name for one in LAYOUTS}
    found = _through(_run("ordinary", layout, _ids()))
    assert found
    print(f"\n{layout}: {len(found)} through")
