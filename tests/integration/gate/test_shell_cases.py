"""The lists of commands that come with Podium: held against the gate, and against a real shell."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from podium.app.policy_trial import PolicyCase, policy_cases, shipped_cases
from podium.core.decisions import Decision, Effect
from podium.policy import split_command
from tests.integration.gate.scripts_that_run_git import Shell, script
from tests.soaking import in_soak
from tests.unit.gate.gate_harness import command_call, context_for, gate_of

GATE = gate_of(default=True)
CASES = {name: policy_cases(data, name) for name, data in shipped_cases()}
EVASIONS = [str(case.command) for case in CASES["evasions.yaml"]]
needs_shell = pytest.mark.skipif(
    not shutil.which("bash") or not shutil.which("git"), reason="needs bash and git"
)


def judged(case: PolicyCase, *, confined: bool | None = None) -> Decision:
    inside = case.confined if confined is None else confined
    context = context_for(confined=inside, network=case.network, hosts=case.hosts)
    return GATE.decide(command_call(str(case.command)), context)


@pytest.mark.parametrize("name", sorted(CASES))
def test_every_shipped_case_holds_under_the_shipped_policy(name: str) -> None:
    wrong = [
        f"{case.command!r}: {output.effect.value} by {output.rule}"
        for case in CASES[name]
        if (output := judged(case)).effect is not case.decision
    ]

    assert wrong == []


def test_the_lists_are_long_enough_to_mean_something() -> None:
    attacks = sum(len(CASES[name]) for name in ("evasions.yaml", "git.yaml", "harm.yaml"))

    assert len(EVASIONS) >= 150
    assert attacks >= 400
    assert len(CASES["ordinary.yaml"]) >= 320
    for cases in CASES.values():
        assert len({case.command for case in cases}) == len(cases)


def test_less_than_one_in_a_hundred_ordinary_commands_is_stopped(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ordinary = CASES["ordinary.yaml"]
    stopped = [case for case in ordinary if judged(case).effect is not Effect.ALLOW]
    with capsys.disabled():
        print(f"\n{len(stopped)} of {len(ordinary)} ordinary commands are wrongly stopped")

    assert len(stopped) < len(ordinary) / 100


@pytest.mark.parametrize(
    "name", ["evasions.yaml", "git.yaml", "harm.yaml", "left_to_the_sandbox.yaml"]
)
def test_without_confinement_none_of_the_attacks_passes_by_itself(name: str) -> None:
    passed = [
        case.command for case in CASES[name] if judged(case, confined=False).effect is Effect.ALLOW
    ]

    assert passed == []


_ENV = {
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_NAME": "a" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_EMAIL": "a@example.com" for who in ("AUTHOR", "COMMITTER")},
}
_REPOSITORY = """
git init -q -b main . && echo 'git checkout evil' > s.sh && echo one > a.txt && git add -A &&
git commit -qm one && git checkout -qb evil && git commit -qm two --allow-empty && git checkout -q main
"""


def leaves_the_branch(line: str, repository: Path) -> bool:
    """Run the line in bash for real and see whether HEAD or its commit moved."""
    env = {**_ENV, "HOME": str(repository.parent)}
    head = repository / ".git" / "HEAD"
    tip = repository / ".git" / "refs/heads/main"
    before = (head.read_text(), tip.read_text())
    process = subprocess.Popen(
        ["bash", "-c", line],
        cwd=repository,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        process.wait(timeout=120)
    except subprocess.TimeoutExpired:
        pass
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    after = (head.read_text(), tip.read_text() if tip.exists() else "")
    return before != after


@needs_shell
@pytest.mark.timeout(300)
@pytest.mark.parametrize("step", [8, in_soak(1)])
def test_evasions_are_live_and_every_one_really_leaves_the_branch(
    tmp_path: Path, step: int
) -> None:
    pattern = tmp_path / "pattern"
    pattern.mkdir()
    subprocess.run(["bash", "-ec", _REPOSITORY], cwd=pattern, env=_ENV, check=True)
    harmless = []
    tried = EVASIONS[::step]
    for number, line in enumerate(tried):
        repository = tmp_path / f"r{number}"
        shutil.copytree(pattern, repository)
        if not leaves_the_branch(line, repository):
            harmless.append(line)
        shutil.rmtree(repository)

    # A machine may lack a program that a line uses; the list as a whole must bite.
    assert len(harmless) <= len(tried) // 20, harmless


@needs_shell
def test_no_script_that_really_starts_git_is_let_through(tmp_path: Path) -> None:
    chance = random.Random(20260415)
    shell = Shell(tmp_path)
    live = missed = 0
    for number in range(400):
        text = script(chance)
        decision = GATE.decide(command_call(text), context_for(confined=True))
        # Running every one takes long; of what is denied every tenth shows that the scripts bite.
        if decision.effect is Effect.ALLOW or number % 10 == 0:
            ran = shell.calls_git(text)
            live += ran
            missed += ran and decision.effect is Effect.ALLOW
    assert missed == 0
    assert live >= 20


@pytest.mark.soak
@needs_shell
@pytest.mark.timeout(1800)
def test_no_script_of_thousands_that_really_starts_git_is_let_through(tmp_path: Path) -> None:
    chance = random.Random(7)
    shell = Shell(tmp_path)
    for _ in range(20_000):
        text = script(chance)
        decision = GATE.decide(command_call(text), context_for(confined=True))
        assert decision.effect is not Effect.ALLOW or not shell.calls_git(text), text


def test_most_scripts_of_the_same_shapes_pass_when_they_do_nothing_wrong() -> None:
    chance = random.Random(11)
    passed = 0
    for _ in range(300):
        text = script(chance, command="ls -la src")
        decision = GATE.decide(command_call(text), context_for(confined=True))
        passed += decision.effect is Effect.ALLOW

    assert passed > 240


def test_people_are_shown_the_commands_of_a_line() -> None:
    line = 'cd src && X=1 make > log; rm -rf "$D"'

    assert split_command(line).commands == (
        ("cd", "src"),
        ("X=1", "make"),
        ("rm", "-rf", "…"),
    )
