"""`podium playbook run`: an agent without hands, and proof by Podium itself."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.integration.cli.command_runner import CommandRunner
from tests.integration.playbook.playbook_harness import (
    EDIT,
    READ,
    Stage,
    call,
    of_type,
    result_of,
    trace_of,
)
from tests.integration.playbook.replay_harness import same
from tests.soaking import in_soak


@pytest.fixture
def stage(cli: CommandRunner) -> Stage:
    return Stage(cli)


def test_a_playbook_is_followed_proved_and_reported(stage: Stage) -> None:
    (stage.root / ".gitignore").write_text("cache/\n*.tmp\n")
    stage.acts(EDIT, call("run_command", command="mkdir cache && touch cache/a cache/b c.tmp"))
    result = stage.run()
    assert result.code == 0, result.err
    assert stage.text("version.txt") == "2.0\n"
    assert "met      grep -q 2.0 version.txt" in result.out
    assert "1 file changed:\n  version.txt\n  and 3 files that git ignores" in result.out
    assert "the agent said (not verified)" in result.out


def test_every_call_is_in_the_trace_requested_before_it_ended(stage: Stage) -> None:
    # Names that are no text do not stop a run.
    (stage.root / os.fsdecode(b"caf\xe9.txt")).write_text("x\n")
    (stage.root / "vendor" / os.fsdecode(b"\xff")).write_text("x\n")
    code, lines = stage.events()
    assert code == 0
    calls = of_type(lines, "tool_requested", "tool_completed", "tool_failed")
    assert [(item["type"], item["tool"]) for item in calls] == [
        ("tool_requested", "read_file"),
        ("tool_completed", "read_file"),
        ("tool_requested", "edit_file"),
        ("tool_completed", "edit_file"),
        ("tool_requested", "run_command"),
        ("tool_completed", "run_command"),
    ]
    assert calls[3]["receipt"] > 0
    events = [line for line in lines if "seq" in line]
    traced = trace_of(stage.root, events[0]["run"])
    assert [item["seq"] for item in traced] == list(range(1, len(traced) + 1))
    payload = {event["seq"]: event["type"] for event in events}
    assert payload.items() <= {item["seq"]: item["type"] for item in traced}.items()


def test_an_agent_that_only_claims_success_has_failed_until_a_person_mends_it(stage: Stage) -> None:
    stage.acts(READ)
    result = stage.run()
    assert result.code == 1
    assert "NOT MET  grep -q 2.0 version.txt: exit code 1" in result.out
    assert "no files were changed" in result.out
    assert "--from prove" in result.err
    run_id = next((stage.root / ".podium" / "runs").iterdir()).name
    (stage.root / "version.txt").write_text("2.0\n")
    again = stage.cli.run("retry", run_id, "--from", "prove")
    assert again.code == 0, again.err


def test_a_playbook_without_criteria_says_that_nothing_proves_it(stage: Stage) -> None:
    stage.playbook(success=[])
    result = stage.run()
    assert result.code == 0
    assert "no success criteria; the result was not checked" in result.out


def test_hands_of_its_own_are_refused_and_what_ignores_that_changes_nothing(stage: Stage) -> None:
    own = {"path": "version.txt", "content": "2.0\n"}
    stage.acts({"write": own}, {"write": own, "ignore_the_gate": True})
    code, lines = stage.events()
    assert code == 1
    assert stage.text("version.txt") == "1.0\n"
    (refused, *_) = of_type(lines, "tool_refused")
    assert "no tools of your own" in refused["reason"]
    assert of_type(lines, "tool_requested")[0]["tool"] == "run_command"


def test_what_is_forbidden_secret_or_ours_is_closed_to_tools_commands_and_programs(
    stage: Stage,
) -> None:
    (stage.root / ".env").write_text("TOKEN_IN_ENV=1234567\n")
    for name in (".git", ".podium"):
        (stage.root / "sub" / name).mkdir(parents=True)
        (stage.root / "sub" / name / "own").write_text("mine\n")
    (stage.root / "settings.py").write_text("open('podium' + '.yaml', 'w')\n")
    memory = "import pathlib\nfor p in pathlib.Path('sub').rglob('own'): p.write_text('PWN')\n"
    (stage.root / "memory.py").write_text(memory)
    stage.acts(
        call("read_file", path="vendor/lib.txt"),
        call("write_file", path="vendor/new.txt", content="x"),
        call("run_command", command="cat vendor/lib.txt || echo none; echo mine > vendor/other"),
        call("write_file", path="look.py", content=READ_ALL),
        call("run_command", command="python3 look.py"),
        call("run_command", command="grep -rs . . || true"),
        call("run_command", command="python3 settings.py || true"),
        call("run_command", command="python3 memory.py || true"),
        EDIT,
    )
    before = stage.text("podium.yaml")
    code, lines = stage.events()
    assert code == 0, lines[-1]
    assert sorted(path.name for path in (stage.root / "vendor").iterdir()) == ["lib.txt"]
    ran = [e for e in of_type(lines, "tool_completed") if e["tool"] == "run_command"]
    assert "1.0" in str(ran[-5]), "the program that looks found what is open"
    assert "theirs" not in str(lines)
    assert "TOKEN_IN_ENV" not in str(lines)
    assert stage.text("podium.yaml") == before
    assert stage.text("sub/.git/own") == stage.text("sub/.podium/own") == "mine\n"


READ_ALL = "import pathlib; print(*(p.read_text() for p in pathlib.Path().rglob('*.txt')))"


@pytest.mark.soak
def test_the_plugins_own_checks_see_all_of_it(stage: Stage) -> None:
    stage.profile(commands={"test": "grep -q theirs vendor/lib.txt && grep -q 2.0 version.txt"})
    stage.acts(EDIT, call("run_checks"))
    code, lines = stage.events()
    assert code == 0, lines[-1]
    (checked,) = [e for e in of_type(lines, "tool_completed") if e["tool"] == "run_checks"]
    assert checked["result"]["passed"]


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "command",
    [
        "touch closed_new.txt",
        in_soak("printf 'closed*\\n' > .gitignore && head -c 60000000 /dev/zero > closed_large"),
        "mkdir -p sub/.git && touch sub/.git/config",
        in_soak("mkdir .git && touch .git/config"),
    ],
)
def test_what_a_program_plants_where_nobody_may_fails_the_run(stage: Stage, command: str) -> None:
    stage.profile(read_only_paths=["closed*"])
    (stage.root / "plant.py").write_text(f"import os\nos.system({command!r})\n")
    stage.acts(EDIT, call("run_command", command="python3 plant.py"))
    code, lines = stage.events()
    assert code == 1, lines[-1]
    assert "protected files were changed" in result_of(lines)["run"]["failure"]["message"]


def test_what_cannot_be_looked_at_is_no_success_where_paths_are_closed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podium.git.worktree_files.MAX_LOOKED_AT", 30)
    flood = "python3 -c 'for n in range(40): open(str(n), chr(119))'"
    stage.acts(EDIT, call("run_command", command=flood))
    code, lines = stage.events()
    assert code == 1, lines[-1]
    assert (
        "cannot tell whether protected files were changed"
        in result_of(lines)["run"]["failure"]["message"]
    )


@pytest.mark.soak
def test_a_planted_repository_is_seen_also_where_the_folder_could_not_be_kept(stage: Stage) -> None:
    stage.profile(forbidden_paths=[])
    plant = "mkdir -p sub/.GIT && truncate -s 1200M large"
    (stage.root / "plant.py").write_text(f"import os\nos.system({plant!r})\n")
    stage.acts(EDIT, call("run_command", command="python3 plant.py"))
    code, lines = stage.events()
    assert code == 1, lines[-1]
    assert "sub/.GIT" in result_of(lines)["run"]["failure"]["message"]


def test_commands_may_read_what_is_read_only_and_the_kernel_keeps_them_from_more(
    stage: Stage,
) -> None:
    (stage.root / "other").mkdir()
    stage.profile(read_only_paths=["vendor", "other/*"], forbidden_paths=[])
    before = stage.text("vendor/lib.txt")
    runs = "python3 -c 'import sys; print(open(sys.argv[1]).read())' vendor/lib.txt"
    spoils = "python3 -c 'import sys; open(sys.argv[1], \"w\")' vendor/lib.txt"
    adds = "python3 -c \"open('other/x','w')\""
    stage.acts(
        EDIT,
        call("run_command", command=f"{runs} && {spoils} || true"),
        call("run_command", command=f"{adds} || true"),
    )
    code, lines = stage.events()
    assert code == 0, lines[-1]
    ran, *_ = [e for e in of_type(lines, "tool_completed") if e["tool"] == "run_command"]
    assert ran["result"]["stdout"].strip() == before.strip()
    assert "Read-only file system" in ran["result"]["stderr"]
    assert stage.text("vendor/lib.txt") == before
    assert list((stage.root / "other").iterdir()) == [], "closed file by file is closed as a folder"


@pytest.mark.parametrize("root", ["..", "/", "home"])
def test_a_folder_that_holds_podiums_own_memory_is_refused(stage: Stage, root: str) -> None:
    place = str(stage.cli.home) if root == "home" else root
    stage.cli.home.mkdir(exist_ok=True)
    result = stage.run("--root", place, "--profile", "plugin-profile.yaml")
    assert (result.code, "no agent may access" in result.err) == (2, True), result.err


def test_what_is_riskier_than_the_profile_allows_is_refused(stage: Stage) -> None:
    stage.profile(allowed_tiers=["T0"])
    code, lines = stage.events()
    refused = of_type(lines, "tool_refused")
    assert code == 1
    assert {item["rule"] for item in refused} == {"profile-tiers"}
    assert "the plugin's profile allows only: T0" in refused[0]["reason"]


def test_a_tool_that_the_playbook_does_not_name_is_not_there(stage: Stage) -> None:
    stage.playbook(allowed_tools=["read_file"])
    code, lines = stage.events()
    (refused, *_) = of_type(lines, "tool_refused")
    assert code == 1
    assert refused["tool"] == "edit_file"
    assert "finish, read_file" in refused["reason"]


@pytest.mark.soak
def test_number_of_calls_is_limited_and_what_was_achieved_is_reported(stage: Stage) -> None:
    stage.playbook(limits={"tool_calls": 2})
    stage.acts(READ, call("list_files"), EDIT)
    code, lines = stage.events()
    assert code == 5
    result = result_of(lines)
    assert result["result"]["stop"]["kind"] == "tool_calls"
    assert of_type(lines, "agent_stopped")
    assert "a limit stopped the agent" in result["run"]["failure"]["message"]
    same(stage, lines[0]["run"])


@pytest.mark.soak
def test_a_limit_that_comes_after_the_work_is_done_is_no_failure(stage: Stage) -> None:
    stage.playbook(limits={"tool_calls": 2})
    stage.acts(READ, EDIT, call("list_files"))
    code, lines = stage.events()
    assert code == 0
    assert result_of(lines)["result"]["stop"]["kind"] == "tool_calls"


@pytest.mark.soak
def test_the_same_call_with_the_same_result_ends_the_agent(stage: Stage) -> None:
    stage.playbook(limits={"same_results": 3})
    stage.acts(*[READ] * 6)
    code, lines = stage.events()
    assert code == 5
    assert len(of_type(lines, "tool_completed")) == 3 + 0
    assert result_of(lines)["result"]["stop"]["kind"] == "same_results"
    same(stage, lines[0]["run"])


@pytest.mark.soak
def test_time_that_ran_out_leaves_with_six(stage: Stage) -> None:
    stage.playbook(limits={"minutes": 0.02})
    stage.acts(EDIT, {"hang": True})
    stage.profile(commands={"test": "false"})
    code, lines = stage.events()
    assert code == 6
    assert result_of(lines)["result"]["stop"]["kind"] == "minutes"
    same(stage, lines[0]["run"])


@pytest.mark.soak
def test_tokens_and_dollars_of_earlier_turns_count(stage: Stage) -> None:
    stage.playbook(limits={"usd": 0.5}, success=["false"])
    asks = call("ask_human", question="Go on?")
    stage.acts({"usage": {"input": 10, "output": 10, "usd": 0.6}}, asks, EDIT)
    code, lines = stage.events()
    assert code == 3
    run_id = lines[0]["run"]
    (approval,) = of_type(lines, "approval_requested")
    assert stage.cli.run("approve", approval["approval_id"], "--say", "yes").code == 0
    result = stage.cli.run("resume", run_id, "--json")
    assert result.code == 5
    assert stage.text("version.txt") == "1.0\n"


@pytest.mark.soak
def test_tokens_reported_at_the_end_count_as_well(stage: Stage) -> None:
    stage.playbook(limits={"tokens": 100}, success=["false"])
    stage.acts({"usage": {"input": 5000, "output": 10}}, EDIT)
    code, lines = stage.events()
    assert code == 5
    assert result_of(lines)["result"]["stop"]["kind"] == "tokens"


def test_a_commit_on_the_persons_branch_asks_that_person(stage: Stage) -> None:
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *words],
            cwd=stage.root,
            check=True,
        )
    stage.acts(EDIT, call("git_commit", message="Bump"))
    code, lines = stage.events()
    assert code == 3
    (asked,) = of_type(lines, "approval_requested")
    assert asked["tool"] == "git_commit"


def test_a_dry_run_shows_what_would_change_and_changes_nothing(stage: Stage) -> None:
    before = sorted(path.name for path in stage.root.iterdir())
    result = stage.run("--dry-run")
    assert result.code == 0, result.err
    assert stage.text("version.txt") == "1.0\n"
    assert "-1.0" in result.out
    assert "+2.0" in result.out
    assert "would change (dry run)" in result.out
    assert sorted(path.name for path in stage.root.iterdir()) == [".podium", *before]
    same(stage, next((stage.root / ".podium" / "runs").iterdir()).name)


@pytest.mark.soak
def test_runs_do_not_work_in_the_folder_of_another_or_within_it(stage: Stage) -> None:
    stage.acts(call("ask_human", question="Wait?"))
    code, lines = stage.events()
    assert code == 3
    first = lines[0]["run"]
    second = stage.run()
    assert second.code == 7
    assert f"podium cancel {first}" in second.err + second.out
    (stage.root / "sub").mkdir()
    assert stage.run("--root", "sub").code == 7
    assert stage.cli.run("cancel", first).code == 0
    same(stage, first)
    code, later = stage.events()
    assert code == 3
    result = stage.cli.run("retry", first)
    assert (result.code, later[0]["run"] in result.err + result.out) == (7, True), result.err


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--input", "version"), "pass --input NAME=VALUE"),
        (("--input", "colour=red"), "there is no input 'colour'"),
        (("--agent", "nobody"), "podium.yaml has no agent 'nobody'"),
        (("--root", "nowhere"), "does not exist"),
        (("--profile", "missing.yaml"), "missing.yaml"),
        (("--wait", "--detach"), "cannot be combined"),
    ],
)
def test_what_cannot_be_run_is_reported_before_anything_is_begun(
    stage: Stage, arguments: tuple[str, ...], words: str
) -> None:
    result = stage.run(*arguments)
    assert (result.code, words in result.err) == (2, True), result.err
    assert not (stage.root / ".podium").exists()


def test_a_secret_that_would_steer_commands_is_refused_before_anything_is_begun(
    stage: Stage,
) -> None:
    stage.profile(secrets={"LD_PRELOAD": "secret://LD_PRELOAD"})
    result = stage.run()
    assert (result.code, "LD_PRELOAD would change" in result.err) == (2, True), result.err


def test_an_agent_that_keeps_its_hands_cannot_follow_a_playbook(stage: Stage) -> None:
    stage.settings(agents={"cmd": {"kind": "command", "command": ["true"]}})
    result = stage.run()
    assert result.code == 2
    assert "cannot be disabled" in result.err


@pytest.mark.parametrize("limits", [{"minutes": 5.0}, in_soak({"tokens": 700_000})])
def test_an_agent_that_uses_tokens_without_end_is_stopped_by_default(
    stage: Stage, limits: dict[str, float]
) -> None:
    stage.playbook(limits=limits)
    stage.acts({"usage": {"input": 800_000, "output": 5}})
    ended = stage.run()
    assert ended.code == 5, ended.err
    assert "raise `limits` in the playbook" in ended.err


@pytest.mark.parametrize("off", [0, in_soak(None)])
def test_a_playbook_can_do_without_a_limit_of_tokens(stage: Stage, off: int | None) -> None:
    stage.playbook(limits={"tokens": off})
    stage.acts({"usage": {"input": 800_000, "output": 5}}, EDIT)
    assert stage.run().code == 0
