"""Programs that a confined tree may start: judged by their final arguments, under whatever name."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from podium.core.errors import CallRefused
from podium.core.processes import ExecRules, ProgramRules, SubcommandRules
from podium.sandbox import ProcessLauncher
from podium.sandbox.confining import seccomp
from podium.sandbox.confining.exec_rules import ExecRuleSet, as_data, from_data, judge
from podium.sandbox.guard.processes import gain_no_privileges
from tests.integration.sandbox.confined import Place, achieved

GIT = ProgramRules(
    program="git",
    options_with_value=("-C",),
    refused_options=("--exec-path", "--git-dir"),
    settings=("user.name", "core.hookspath"),
    subcommands={
        "status": SubcommandRules(),
        "version": SubcommandRules(),
        "commit": SubcommandRules(refused_options=("--no-verify", "-n")),
        "stash": SubcommandRules(allowed_subcommands=("list", "show")),
    },
    instead="add and commit",
)
RULES = ExecRules(refused={"sudo": "nobody becomes another"}, programs=(GIT,))


def rules() -> ExecRuleSet:
    return from_data(as_data(RULES))


@pytest.mark.parametrize(
    "words",
    [
        "git status",
        "git -C sub status --short",
        "git -c user.name=x -c core.hooksPath=/dev/null commit -m text",
        "git commit -m text -- -n",
        "git stash list",
        "git stash",
        "git",
        "git --no-pager status",
        "/usr/lib/git-core/git-status",
        "github status",
        "ls --no-verify",
    ],
)
def test_what_the_rules_list_may_be_started(words: str) -> None:
    argv = words.split()
    assert judge(rules(), (argv[0].rpartition("/")[2],), argv) == ""


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("git checkout main", "'checkout' is not allowed"),
        ("git -C sub checkout main", "'checkout' is not allowed"),
        ("git -Csub --no-pager push", "'push' is not allowed"),
        ("git -c core.fsmonitor=evil status", "setting 'core.fsmonitor'"),
        ("git -ccore.fsmonitor=evil status", "setting 'core.fsmonitor'"),
        ("git --exec-path=/evil status", "option '--exec-path=/evil'"),
        ("git --git-dir /x status", "option '--git-dir'"),
        ("git commit --no-verify", "commit with '--no-verify'"),
        ("git commit --no-ver", "commit with '--no-ver'"),
        ("git commit -anm text", "commit with '-anm'"),
        ("git stash drop", "stash 'drop'"),
        ("/usr/lib/git-core/git-checkout x", "'checkout' is not allowed"),
        ("sudo ls", "nobody becomes another"),
        (
            "/lib64/ld-linux-x86-64.so.2 --library-path /x /usr/bin/git push",
            "'push' is not allowed",
        ),
    ],
)
def test_what_they_do_not_list_may_not(words: str, reason: str) -> None:
    argv = words.split()
    assert reason in judge(rules(), (argv[0].rpartition("/")[2],), argv)


def test_every_reading_of_a_name_and_a_call_that_disagree_has_to_pass() -> None:
    assert "'checkout'" in judge(rules(), ("git", "mine"), ["git-checkout", "status"])
    assert "'checkout'" in judge(rules(), ("git-checkout",), ["git", "status"])
    assert "'switch'" in judge(rules(), ("git", "ls"), ["ls", "switch"])
    assert judge(rules(), ("git", "ls"), ["git-status"]) == ""


def test_agent_is_advised_what_to_do_instead() -> None:
    assert judge(rules(), ("git",), ["git", "push"]).endswith("; instead: add and commit")


DISGUISES = {
    "plain": "git checkout x",
    "by path": "/usr/bin/git checkout x",
    "by its own name": "/usr/lib/git-core/git-checkout x",
    "by a link": "ln -s /usr/bin/git mine && ./mine checkout x",
    "by a lie": "bash -c 'exec -a ls /usr/bin/git checkout x'",
    "by a script": "printf '#!/usr/bin/git checkout\\n' > s && chmod +x s && ./s",
    "by the loader": "/lib64/ld-linux-x86-64.so.2 /usr/bin/git checkout x",
    "by env": "env -i /usr/bin/git checkout x",
    "by xargs": "echo checkout x | xargs git",
    "by another folder": "cd / && usr/bin/git checkout x",
    "by a variable": 'a=check; git "$a"out x',
}


@pytest.mark.parametrize("script", DISGUISES.values(), ids=DISGUISES.keys())
async def test_a_program_is_known_in_every_disguise(
    launcher: ProcessLauncher, place: Place, script: str
) -> None:
    if "ld-linux-x86-64" in script and not Path("/lib64/ld-linux-x86-64.so.2").exists():
        pytest.skip("another loader here")
    ended = await launcher.run(place.sh(script, confinement=place.confinement(execs=RULES)))
    assert ended.exit_code != 0
    assert b"ermission denied" in ended.stderr
    assert len(ended.refused_execs) == 1
    assert "git: 'checkout' is not allowed" in ended.refused_execs[0]


async def test_what_is_allowed_runs_and_nobody_hears_of_it(
    launcher: ProcessLauncher, place: Place
) -> None:
    confinement = place.confinement(execs=RULES)
    ended = await launcher.run(
        place.sh("git --version; git version; ls >/dev/null", confinement=confinement)
    )
    assert (ended.exit_code, ended.stderr, ended.refused_execs) == (0, b"", ())


async def test_threads_and_odd_ways_of_starting_are_judged_too(
    launcher: ProcessLauncher, place: Place
) -> None:
    code = """
import threading
git = "/usr/bin/git"
def in_a_thread():
    results = []
    def run():
        results.append(subprocess.run([git, "checkout", "x"], capture_output=True))
    thread = threading.Thread(target=run); thread.start(); thread.join()
    return bool(results) and results[0].returncode != 126
attempt("thread", in_a_thread)
def by_descriptor():
    file = os.open(git, os.O_RDONLY)
    pid = os.fork()
    if pid == 0:
        try:
            os.execve(file, ["git", "checkout", "x"], {})
        except OSError as error:
            os._exit(0 if error.errno == 13 else 1)
    return os.waitpid(pid, 0)[1] != 0
attempt("descriptor", by_descriptor)
def by_proc():
    file = os.open(git, os.O_RDONLY)
    return subprocess.run([f"/proc/self/fd/{file}", "checkout", "x"], pass_fds=[file]).returncode != 126
attempt("proc", by_proc)
def huge():
    return subprocess.run([git, "checkout", *["x" * 100_000] * 10]).returncode != 126
attempt("huge", huge)
"""
    ended = await launcher.run(place.attempts(code, confinement=place.confinement(execs=RULES)))
    # A refused start shows as an error of `subprocess`, which `attempt` takes for a failure.
    assert achieved(ended) == []
    assert len(ended.refused_execs) >= 3


def test_without_a_listener_nothing_can_be_started() -> None:
    pid = os.fork()
    if pid == 0:
        try:
            gain_no_privileges()
            os.close(seccomp.install(seccomp.mounted()))
            os.execv("/bin/true", ["true"])
        except OSError as error:
            os._exit(42 if error.errno == errno.ENOSYS else 1)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 42


@pytest.mark.parametrize("words", ["git checkout main", "./mine checkout main", "./script"])
async def test_the_first_program_is_judged_as_all_others_are(
    launcher: ProcessLauncher, place: Place, words: str
) -> None:
    (place.given / "mine").symlink_to("/usr/bin/git")
    (place.given / "script").write_text("#!/usr/bin/git checkout\n")
    (place.given / "script").chmod(0o755)
    spawn = place.spawn(*words.split(), confinement=place.confinement(execs=RULES))
    with pytest.raises(CallRefused, match=r"refused: .*checkout.*instead: add and commit"):
        await launcher.run(spawn)


async def test_a_first_program_that_the_rules_list_runs(
    launcher: ProcessLauncher, place: Place
) -> None:
    spawn = place.spawn("git", "version", confinement=place.confinement(execs=RULES))
    ended = await launcher.run(spawn)
    assert (ended.exit_code, ended.refused_execs) == (0, ())
