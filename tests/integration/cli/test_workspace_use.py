"""`podium workspaces create`, `exec` and `deliver`, on real repositories and the real kernel."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from tests.integration.cli.command_runner import CommandResult, CommandRunner
from tests.integration.cli.test_workspaces import git


@pytest.fixture
def project(cli: CommandRunner) -> CommandRunner:
    (cli.project / "app.py").write_text("print('hello')\n")
    (cli.project / ".gitignore").write_text(".env\n.podium\n")
    (cli.project / ".env").write_text("KEY=1\n")
    for words in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-qm", "first")):
        git(cli, *words)
    return cli


def execute(cli: CommandRunner, *words: str, env: dict[str, str] | None = None) -> CommandResult:
    return cli.run("workspaces", "exec", "fix", "--", *words, env=env)


def made(cli: CommandRunner, *words: str) -> dict[str, object]:
    result = cli.run("workspaces", "create", "fix", *words, "--json")
    assert result.code == 0, result.err
    record: dict[str, object] = result.json["workspace"]
    return record


def piped(cli: CommandRunner, given: bytes, *words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        cli.command("workspaces", "exec", "fix", "--", *words),
        input=given,
        cwd=cli.project,
        env=cli.environ,
        capture_output=True,
        timeout=120,
        check=False,
    )


def test_work_is_made_inside_and_comes_back_only_as_the_one_branch(project: CommandRunner) -> None:
    path = str(made(project)["path"])
    before = git(project, "for-each-ref")
    script = "echo '# more' >> app.py && git commit -qam work && git log --oneline"
    result = project.spawn("workspaces", "exec", "fix", "--", "sh", "-c", script)
    assert result.code == 0, result.err
    assert "work" in result.out
    assert git(project, "for-each-ref") == before
    done = project.run("workspaces", "deliver", "fix", "--json").json["delivery"]
    assert done["branch"] == "refs/heads/podium/fix"
    assert done["paths"] == ["app.py"]
    assert git(project, "log", "--format=%s", "podium/fix") == "work\nfirst"
    assert git(project, "log", "--format=%s", "main") == "first"
    assert Path(path, "app.py").read_text().endswith("# more\n")
    assert "nothing new" in project.run("workspaces", "deliver", "fix").out


def test_git_is_judged_whoever_starts_it_and_a_command_leaves_with_its_own_code(
    project: CommandRunner,
) -> None:
    made(project)
    outside = project.project / "outside.txt"
    script = (
        f"echo x > {outside}; git checkout -q main; curl -sS http://example.org >/dev/null; exit 7"
    )
    result = execute(project, "sh", "-c", script)
    assert result.code == 7
    assert "podium: refused: git checkout -q main" in result.err
    assert not outside.exists()
    assert git(project, "branch", "--show-current") == "main"
    result = execute(project, "git", "checkout", "main")
    assert result.code == 4
    assert "git checkout main: git: 'checkout' is not allowed" in result.err
    assert "instead: stay on your branch" in result.err
    assert execute(project, "git", "branch", "--show-current").out == "podium/fix\n"
    # Going back without touching files is allowed, and throwing them away is not.
    commit = "echo more >> app.py; git commit -qam one && git reset --soft HEAD~1"
    result = execute(project, "sh", "-c", commit)
    assert result.code == 0, result.err
    assert execute(project, "git", "diff", "--cached", "--name-only").out == "app.py\n"
    assert execute(project, "git", "reset", "--hard").code == 4


def test_a_command_ends_as_in_a_shell_with_its_output_and_without_secrets(
    project: CommandRunner,
) -> None:
    path = str(made(project)["path"])
    result = project.run(
        "workspaces", "exec", "fix", "--json", "--", "sh", "-c", "echo out; echo err >&2"
    )
    assert (result.code, result.json["exit_code"]) == (0, 0)
    assert result.json["stdout"] == "out\n"
    assert result.json["stderr"] == "err\n"
    result = project.run("workspaces", "exec", "fix", "--seconds", "0.5", "--", "sleep", "600")
    assert result.code == 6
    assert "podium: stopped after 0.5 s" in result.err
    result = execute(project, "no-such-program")
    assert result.code == 127
    assert "'no-such-program'" in result.err
    assert execute(project, "sh", "-c", "kill -9 $$").code == 137
    result = execute(project, "sh", "-c", "echo ghp_$(printf 'a%.0s' $(seq 36)) | tee /dev/stderr")
    assert "ghp_" not in result.out + result.err
    assert "[redacted" in result.out
    assert "[redacted" in result.err
    planted = "mkdir src && cd src && git init -q . 2>/dev/null || mkdir -p .git/objects"
    assert "moved away" in execute(project, "sh", "-c", planted).err
    assert not Path(path, "src/.git").exists()
    result = execute(project, "true", env={"PODIUM_SANDBOX": "none"})
    assert result.code == 0
    assert "`sandbox: none`: agents and their commands run with all your permissions" in result.err
    help_ = project.run("workspaces", "exec", "--help").out
    assert "podium workspaces exec fix-login -- npm test" in help_


@pytest.mark.soak
def test_bytes_reach_the_program_and_come_back_whole_where_nobody_looks_at_them(
    project: CommandRunner,
) -> None:
    made(project)
    odd = b"a\tb\r\x1b[31mred\x1b[0m \xff\xfe\0 \xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb\n\nend"
    much = odd + bytes(range(256)) * 8000 + odd
    program = f"import os, shutil, sys; os.write(2, {odd!r}); shutil.copyfileobj(sys.stdin.buffer, sys.stdout.buffer)"
    done = piped(project, much, "python3", "-c", program)
    assert (done.returncode, done.stdout, done.stderr) == (0, much, odd)


@pytest.mark.soak
def test_a_file_reaches_the_program_whole(project: CommandRunner, tmp_path: Path) -> None:
    made(project)
    much = bytes(range(256)) * 8000
    (tmp_path / "much").write_bytes(much)
    with (tmp_path / "much").open("rb") as file:
        command = project.command("workspaces", "exec", "fix", "--", "sha256sum")
        done = subprocess.run(
            command,
            stdin=file,
            cwd=project.project,
            env=project.environ,
            capture_output=True,
            check=True,
        )
    assert done.stdout.decode().split()[0] == hashlib.sha256(much).hexdigest()


@pytest.mark.soak
def test_a_program_without_end_is_ended_when_its_reader_goes(project: CommandRunner) -> None:
    """Its input, which does not end either, keeps nothing waiting."""
    made(project)
    read_end, write_end = os.pipe()
    command = project.command("workspaces", "exec", "fix", "--", "yes")
    with subprocess.Popen(
        command,
        cwd=project.project,
        env=project.environ,
        stdin=read_end,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"y\n"
        process.stdout.close()
        assert process.wait(120) != 0
    os.close(read_end)
    os.close(write_end)


@pytest.mark.soak
def test_what_was_recovered_before_is_delivered_all_the_same(project: CommandRunner) -> None:
    made(project)
    script = "echo x > x.txt && git add x.txt && git commit -qm work"
    assert project.run("workspaces", "exec", "fix", "--", "sh", "-c", script).code == 0
    assert project.run("workspaces", "snapshot", "fix").code == 0
    assert project.run("workspaces", "recover", "fix").code == 0
    assert "1 commit, 1 file" in project.run("workspaces", "deliver", "fix").out
    assert git(project, "log", "--format=%s", "podium/fix") == "work\nfirst"


def test_commits_that_may_not_come_back_change_nothing(project: CommandRunner) -> None:
    made(project)
    before = git(project, "for-each-ref")
    script = "ln -s /etc/passwd link && git add link && git commit -qm link"
    assert project.run("workspaces", "exec", "fix", "--", "sh", "-c", script).code == 0
    result = project.run("workspaces", "deliver", "fix")
    assert result.code == 4
    assert "link" in result.err
    assert git(project, "for-each-ref") == before
    # Recovering is no way round the gate.
    assert project.run("workspaces", "snapshot", "fix").code == 0
    project.run("workspaces", "recover", "fix")
    assert project.run("workspaces", "deliver", "fix").code == 4


def test_a_projects_set_up_runs_once_a_person_trusts_it(project: CommandRunner) -> None:
    project.says(
        "workspaces:\n  copy_files: [.env]\n  ports: [PORT]\n"
        "  after_create: ['echo $PORT > port.txt']\n  ready: 'test -f port.txt'\n  forbidden: [infra]\n"
    )
    result = project.run("workspaces", "create", "fix")
    assert result.code == 1
    assert "podium trust" in result.err
    assert not list(project.project.parent.glob(".worktrees/*"))
    assert "after_create" in project.run("trust", "--yes").out
    record = made(project)
    path, ports = Path(str(record["path"])), record["ports"]
    assert isinstance(ports, dict)
    assert (path / ".env").read_text() == "KEY=1\n"
    assert (path / "port.txt").read_text().strip() == str(ports["PORT"])
    script = "echo $PORT; touch infra/x"
    result = project.run("workspaces", "exec", "fix", "--", "sh", "-c", script)
    assert result.out.strip() == str(ports["PORT"])
    assert result.code != 0


def test_a_set_up_that_fails_leaves_nothing_and_shows_its_output(project: CommandRunner) -> None:
    (project.home).mkdir(exist_ok=True)
    (project.home / "config.yaml").write_text(
        "workspaces:\n  after_create: ['echo no such package; exit 3']\n"
    )
    before = git(project, "for-each-ref")
    result = project.run("workspaces", "create", "fix")
    assert result.code == 1
    assert "no such package" in result.err
    assert git(project, "for-each-ref") == before
    assert git(project, "worktree", "list").count("\n") == 0


def test_a_project_cannot_switch_the_sandbox_off(project: CommandRunner) -> None:
    project.says("sandbox: none\n")
    made(project)
    target = project.project / "escaped.txt"
    project.run("workspaces", "exec", "fix", "--", "sh", "-c", f"echo x > {target}")
    assert not target.exists()


def test_names_of_missing_workspaces_are_reported(project: CommandRunner) -> None:
    for words in (("exec", "nope", "--", "true"), ("deliver", "nope")):
        result = project.run("workspaces", *words)
        assert result.code == 2
        assert "no workspace 'nope'" in result.err


def test_a_commit_with_a_known_secret_does_not_come_back(project: CommandRunner) -> None:
    made(project)
    token = "not-the-shape-of-a-token-5e81"
    script = f"echo {token} > key; git add key; git commit -qm key; rm key; git commit -qam gone"
    result = project.run("workspaces", "exec", "fix", "--", "sh", "-c", script)
    assert result.code == 0, result.err
    result = project.run("workspaces", "deliver", "fix", env={"GITHUB_TOKEN": token})
    assert result.code == 4
    assert "key:1 (the value of GITHUB_TOKEN" in result.err
    assert token not in result.err
    assert git(project, "log", "--format=%s", "podium/fix") == "first"


def test_guarded_files_wait_for_an_approval_that_shows_the_diff(project: CommandRunner) -> None:
    made(project)
    script = "echo 'checks: []' > podium.yaml; git add podium.yaml; git commit -qm loose"
    assert project.run("workspaces", "exec", "fix", "--", "sh", "-c", script).code == 0
    result = project.run("workspaces", "deliver", "fix", "--json")
    assert result.code == 3
    assert result.json["waiting"]["files"] == ["podium.yaml (new)"]
    approval = result.json["waiting"]["approval_id"]
    # Asked again, even by a process that knows the record alone, it is the same question.
    result = project.run("workspaces", "deliver", "fix")
    assert result.code == 3
    assert "and `podium workspaces deliver fix`" in result.err
    assert "+checks: []" in project.run("approvals", approval).out
    # A question about an earlier change is withdrawn.
    change = "echo 'checks: [x]' > podium.yaml; git commit -qam other"
    assert project.run("workspaces", "exec", "fix", "--", "sh", "-c", change).code == 0
    later = project.run("workspaces", "deliver", "fix", "--json").json["waiting"]["approval_id"]
    pending = [item["id"] for item in project.run("approvals", "--json").json["approvals"]]
    assert pending == [later]
    assert project.run("approve", approval).code == 4
    assert project.run("approve", later).code == 0
    more = "echo 'mode: auto' >> podium.yaml; git commit -qam looser"
    assert project.run("workspaces", "exec", "fix", "--", "sh", "-c", more).code == 0
    result = project.run("workspaces", "deliver", "fix", "--json")
    assert result.code == 3
    other = result.json["waiting"]["approval_id"]
    assert other not in (approval, later)
    assert git(project, "log", "--format=%s", "podium/fix") == "first"
    assert project.run("approve", other).code == 0
    result = project.run("workspaces", "deliver", "fix")
    assert (result.code, result.out[:24]) == (0, "podium/fix: 3 commits, 1")


@pytest.mark.soak
def test_a_question_about_an_earlier_change_is_withdrawn(project: CommandRunner) -> None:
    made(project)
    asked = []
    for text in ("checks: []", "mode: auto", "checks: []"):
        script = f"echo '{text}' > podium.yaml; git add podium.yaml; git reset -q --soft main; git commit -qm loose"
        assert project.run("workspaces", "exec", "fix", "--", "sh", "-c", script).code == 0
        result = project.run("workspaces", "deliver", "fix", "--json")
        assert result.code == 3, result.err
        asked.append(result.json["waiting"]["approval_id"])
        pending = [
            approval["id"] for approval in project.run("approvals", "--json").json["approvals"]
        ]
        assert pending == asked[-1:]
    assert len(set(asked)) == 3
    assert project.run("approve", asked[0]).code == 4
    assert project.run("approve", asked[2]).code == 0
    assert project.run("workspaces", "deliver", "fix").code == 0


def planted(cli: CommandRunner, *paths: str) -> list[str]:
    """The guarded files that a person is asked about when an agent's commit writes to these."""
    made(cli)
    script = 'for p; do mkdir -p "$(dirname "$p")"; echo x >> "$p"; done; git add -A; git commit -qm more'
    assert cli.run("workspaces", "exec", "fix", "--", "sh", "-c", script, "sh", *paths).code == 0
    result = cli.run("workspaces", "deliver", "fix", "--json")
    assert result.code == 3, result.out
    assert "bridge/notes.md" not in str(result.json)
    return sorted(result.json["waiting"]["files"])


@pytest.mark.soak
def test_orders_launchers_and_files_that_the_settings_name_wait_for_an_approval(
    project: CommandRunner,
) -> None:
    (project.project / "src").mkdir()
    (project.project / "src/app.py").write_text("print(1)\n")
    (project.project / "podium.yaml").write_text(
        "agents:\n"
        "  player: {kind: scripted, script: agents/player.yaml}\n"
        "  own: {kind: command, command: [python, tools/agent.py, --in=src, -c, 'sh run.sh']}\n"
        "flows:\n"
        "  pipeline: {stages: {plan: {prompt: prompts/plan.md}, audit: {prompt: review}}}\n"
        "  sense: {rules: g/rules.yaml, pack: kits/bikes, layout: {inbox: orders/in}}\n"
        "checks: [sh check.sh]\n"
    )
    git(project, "add", ".")
    git(project, "commit", "-qm", "settings")
    steering = [
        "agents/player.yaml", "g/rules.yaml", "kits/bikes/handlers.py", "packs/podium/handlers.py",
        "plugin-profile.yaml", "prompts/plan.md", "run.sh", "tools/agent.py",
    ]  # fmt: skip
    work = ["src/app.py", "check.sh", "review/notes.md", "packs/bikes/handlers.py", "prompts/x.md"]
    acted_on = ["bridge/claimed/CLC/N.yaml", "g/tools/gmx_clc_orchestrator.zsh", "orders/in/N.yaml"]
    idle = ["bridge/notes.md", "bridge/inbox/CLC/elsewhere.yaml"]
    asked = planted(project, *steering, *work, *acted_on, *idle)
    assert asked == sorted(f"{path} (new)" for path in (*steering, *acted_on))


@pytest.mark.soak
def test_a_link_above_the_inbox_waits_for_an_approval(project: CommandRunner) -> None:
    made(project)
    script = "mkdir -p e/inbox/CLC; echo x > e/inbox/CLC/N.yaml; ln -s e bridge; git add -A; git commit -qm more"
    assert project.run("workspaces", "exec", "fix", "--", "sh", "-c", script).code == 0
    result = project.run("workspaces", "deliver", "fix", "--json")
    files = ["bridge (new link)", "e/inbox/CLC/N.yaml (new)"]
    assert (result.code, result.json["waiting"]["files"]) == (3, files)


@pytest.mark.soak
def test_guarded_files_that_a_person_rejects_do_not_come_back(project: CommandRunner) -> None:
    made(project)
    script = "echo 'echo hi' > .envrc; git add .envrc; git commit -qm env"
    assert project.run("workspaces", "exec", "fix", "--", "sh", "-c", script).code == 0
    waiting = project.run("workspaces", "deliver", "fix", "--json").json["waiting"]
    assert project.run("reject", waiting["approval_id"], "--why", "no shells").code == 0
    for _ in range(2):
        result = project.run("workspaces", "deliver", "fix")
        assert result.code == 4
        assert "no shells" in result.err
    assert git(project, "log", "--format=%s", "podium/fix") == "first"
