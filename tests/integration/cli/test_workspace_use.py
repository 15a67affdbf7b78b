"""`podium workspaces create`, `exec` and `deliver`, on real repositories and the real kernel."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from tests.integration.cli.desk import Desk, Said
from tests.integration.cli.test_workspaces import git


@pytest.fixture
def project(desk: Desk) -> Desk:
    (desk.project / "app.py").write_text("print('hello')\n")
    (desk.project / ".gitignore").write_text(".env\n.podium\n")
    (desk.project / ".env").write_text("KEY=1\n")
    for words in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-qm", "first")):
        git(desk, *words)
    return desk


def execute(desk: Desk, *words: str, env: dict[str, str] | None = None) -> Said:
    return desk.run("workspaces", "exec", "fix", "--", *words, env=env)


def made(desk: Desk, *words: str) -> dict[str, object]:
    said = desk.run("workspaces", "create", "fix", *words, "--json")
    assert said.code == 0, said.err
    record: dict[str, object] = said.json["workspace"]
    return record


def piped(desk: Desk, given: bytes, *words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        desk.command("workspaces", "exec", "fix", "--", *words),
        input=given,
        cwd=desk.project,
        env=desk.environ,
        capture_output=True,
        timeout=120,
        check=False,
    )


def test_work_is_made_inside_and_comes_back_only_as_the_one_branch(project: Desk) -> None:
    path = str(made(project)["path"])
    before = git(project, "for-each-ref")
    script = "echo '# more' >> app.py && git commit -qam work && git log --oneline"
    said = project.spawn("workspaces", "exec", "fix", "--", "sh", "-c", script)
    assert said.code == 0, said.err
    assert "work" in said.out
    assert git(project, "for-each-ref") == before
    done = project.run("workspaces", "deliver", "fix", "--json").json["delivery"]
    assert done["branch"] == "refs/heads/podium/fix"
    assert done["paths"] == ["app.py"]
    assert git(project, "log", "--format=%s", "podium/fix") == "work\nfirst"
    assert git(project, "log", "--format=%s", "main") == "first"
    assert Path(path, "app.py").read_text().endswith("# more\n")
    assert "nothing new" in project.run("workspaces", "deliver", "fix").out


def test_git_is_judged_whoever_starts_it_and_a_command_leaves_with_its_own_code(
    project: Desk,
) -> None:
    made(project)
    outside = project.project / "outside.txt"
    script = (
        f"echo x > {outside}; git checkout -q main; curl -sS http://example.org >/dev/null; exit 7"
    )
    said = execute(project, "sh", "-c", script)
    assert said.code == 7
    assert "podium: refused: git checkout -q main" in said.err
    assert not outside.exists()
    assert git(project, "branch", "--show-current") == "main"
    said = execute(project, "git", "checkout", "main")
    assert said.code == 4
    assert "git checkout main: git: 'checkout' is not allowed" in said.err
    assert "instead: stay on your branch" in said.err
    assert execute(project, "git", "branch", "--show-current").out == "podium/fix\n"
    # Going back without touching files is allowed, and throwing them away is not.
    commit = "echo more >> app.py; git commit -qam one && git reset --soft HEAD~1"
    said = execute(project, "sh", "-c", commit)
    assert said.code == 0, said.err
    assert execute(project, "git", "diff", "--cached", "--name-only").out == "app.py\n"
    assert execute(project, "git", "reset", "--hard").code == 4


def test_a_command_ends_as_in_a_shell_with_its_output_and_without_secrets(project: Desk) -> None:
    path = str(made(project)["path"])
    said = project.run(
        "workspaces", "exec", "fix", "--json", "--", "sh", "-c", "echo out; echo err >&2"
    )
    assert (said.code, said.json["exit_code"]) == (0, 0)
    assert said.json["stdout"] == "out\n"
    assert said.json["stderr"] == "err\n"
    said = project.run("workspaces", "exec", "fix", "--seconds", "0.5", "--", "sleep", "600")
    assert said.code == 6
    assert "podium: stopped after 0.5 s" in said.err
    said = execute(project, "no-such-program")
    assert said.code == 127
    assert "'no-such-program'" in said.err
    assert execute(project, "sh", "-c", "kill -9 $$").code == 137
    said = execute(project, "sh", "-c", "echo ghp_$(printf 'a%.0s' $(seq 36)) | tee /dev/stderr")
    assert "ghp_" not in said.out + said.err
    assert "[redacted" in said.out
    assert "[redacted" in said.err
    planted = "mkdir src && cd src && git init -q . 2>/dev/null || mkdir -p .git/objects"
    assert "moved away" in execute(project, "sh", "-c", planted).err
    assert not Path(path, "src/.git").exists()
    said = execute(project, "true", env={"PODIUM_SANDBOX": "none"})
    assert said.code == 0
    assert "`sandbox: none`: agents and their commands run with all your permissions" in said.err
    help_ = project.run("workspaces", "exec", "--help").out
    assert "podium workspaces exec fix-login -- npm test" in help_


@pytest.mark.soak
def test_bytes_reach_the_program_and_come_back_whole_where_nobody_looks_at_them(
    project: Desk,
) -> None:
    made(project)
    odd = b"a\tb\r\x1b[31mred\x1b[0m \xff\xfe\0 \xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb\n\nend"
    much = odd + bytes(range(256)) * 8000 + odd
    program = f"import os, shutil, sys; os.write(2, {odd!r}); shutil.copyfileobj(sys.stdin.buffer, sys.stdout.buffer)"
    done = piped(project, much, "python3", "-c", program)
    assert (done.returncode, done.stdout, done.stderr) == (0, much, odd)


@pytest.mark.soak
def test_a_file_reaches_the_program_whole(project: Desk, tmp_path: Path) -> None:
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
def test_a_program_without_end_is_ended_when_its_reader_goes(project: Desk) -> None:
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
def test_what_was_recovered_before_is_delivered_all_the_same(project: Desk) -> None:
    made(project)
    script = "echo x > x.txt && git add x.txt && git commit -qm work"
    assert project.run("workspaces", "exec", "fix", "--", "sh", "-c", script).code == 0
    assert project.run("workspaces", "snapshot", "fix").code == 0
    assert project.run("workspaces", "recover", "fix").code == 0
    assert "1 commit, 1 file" in project.run("workspaces", "deliver", "fix").out
    assert git(project, "log", "--format=%s", "podium/fix") == "work\nfirst"


def test_commits_that_may_not_come_back_change_nothing(project: Desk) -> None:
    made(project)
    before = git(project, "for-each-ref")
    script = "ln -s /etc/passwd link && git add link && git commit -qm link"
    assert project.run("workspaces", "exec", "fix", "--", "sh", "-c", script).code == 0
    said = project.run("workspaces", "deliver", "fix")
    assert said.code == 4
    assert "link" in said.err
    assert git(project, "for-each-ref") == before
    # Recovering is no way round the gate.
    assert project.run("workspaces", "snapshot", "fix").code == 0
    project.run("workspaces", "recover", "fix")
    assert project.run("workspaces", "deliver", "fix").code == 4


def test_a_projects_set_up_runs_once_a_person_trusts_it(project: Desk) -> None:
    project.says(
        "workspaces:\n  copy_files: [.env]\n  ports: [PORT]\n"
        "  after_create: ['echo $PORT > port.txt']\n  ready: 'test -f port.txt'\n  forbidden: [infra]\n"
    )
    said = project.run("workspaces", "create", "fix")
    assert said.code == 1
    assert "podium trust" in said.err
    assert not list(project.project.parent.glob(".worktrees/*"))
    assert "after_create" in project.run("trust", "--yes").out
    record = made(project)
    path, ports = Path(str(record["path"])), record["ports"]
    assert isinstance(ports, dict)
    assert (path / ".env").read_text() == "KEY=1\n"
    assert (path / "port.txt").read_text().strip() == str(ports["PORT"])
    script = "echo $PORT; touch infra/x"
    said = project.run("workspaces", "exec", "fix", "--", "sh", "-c", script)
    assert said.out.strip() == str(ports["PORT"])
    assert said.code != 0


def test_a_set_up_that_fails_leaves_nothing_and_shows_its_output(project: Desk) -> None:
    (project.home).mkdir(exist_ok=True)
    (project.home / "config.yaml").write_text(
        "workspaces:\n  after_create: ['echo no such package; exit 3']\n"
    )
    before = git(project, "for-each-ref")
    said = project.run("workspaces", "create", "fix")
    assert said.code == 1
    assert "no such package" in said.err
    assert git(project, "for-each-ref") == before
    assert git(project, "worktree", "list").count("\n") == 0


def test_a_project_cannot_switch_the_sandbox_off(project: Desk) -> None:
    project.says("sandbox: none\n")
    made(project)
    target = project.project / "escaped.txt"
    project.run("workspaces", "exec", "fix", "--", "sh", "-c", f"echo x > {target}")
    assert not target.exists()


def test_names_of_workspaces_that_are_not_there_are_told(project: Desk) -> None:
    for words in (("exec", "nope", "--", "true"), ("deliver", "nope")):
        said = project.run("workspaces", *words)
        assert said.code == 2
        assert "no workspace 'nope'" in said.err


def test_a_commit_with_a_known_secret_does_not_come_back(project: Desk) -> None:
    made(project)
    token = "not-the-shape-of-a-token-5e81"
    script = f"echo {token} > key; git add key; git commit -qm key; rm key; git commit -qam gone"
    said = project.run("workspaces", "exec", "fix", "--", "sh", "-c", script)
    assert said.code == 0, said.err
    said = project.run("workspaces", "deliver", "fix", env={"GITHUB_TOKEN": token})
    assert said.code == 4
    assert "key:1 (the value of GITHUB_TOKEN" in said.err
    assert token not in said.err
    assert git(project, "log", "--format=%s", "podium/fix") == "first"


def test_guarded_files_wait_for_an_approval_that_shows_the_diff(project: Desk) -> None:
    made(project)
    script = "echo 'checks: []' > podium.yaml; git add podium.yaml; git commit -qm loose"
    assert project.run("workspaces", "exec", "fix", "--", "sh", "-c", script).code == 0
    said = project.run("workspaces", "deliver", "fix", "--json")
    assert said.code == 3
    assert said.json["waiting"]["files"] == ["podium.yaml (new)"]
    approval = said.json["waiting"]["approval_id"]
    # Asked again, even by a process that knows the record alone, it is the same question.
    said = project.run("workspaces", "deliver", "fix")
    assert said.code == 3
    assert "and `podium workspaces deliver fix`" in said.err
    assert "+checks: []" in project.run("approvals", approval).out
    # A question about an earlier change is withdrawn.
    change = "echo 'checks: [x]' > podium.yaml; git commit -qam other"
    assert project.run("workspaces", "exec", "fix", "--", "sh", "-c", change).code == 0
    later = project.run("workspaces", "deliver", "fix", "--json").json["waiting"]["approval_id"]
    pending = [each["id"] for each in project.run("approvals", "--json").json["approvals"]]
    assert pending == [later]
    assert project.run("approve", approval).code == 4
    assert project.run("approve", later).code == 0
    more = "echo 'mode: auto' >> podium.yaml; git commit -qam looser"
    assert project.run("workspaces", "exec", "fix", "--", "sh", "-c", more).code == 0
    said = project.run("workspaces", "deliver", "fix", "--json")
    assert said.code == 3
    other = said.json["waiting"]["approval_id"]
    assert other not in (approval, later)
    assert git(project, "log", "--format=%s", "podium/fix") == "first"
    assert project.run("approve", other).code == 0
    said = project.run("workspaces", "deliver", "fix")
    assert (said.code, said.out[:24]) == (0, "podium/fix: 3 commits, 1")


@pytest.mark.soak
def test_a_question_about_an_earlier_change_is_withdrawn(project: Desk) -> None:
    made(project)
    asked = []
    for text in ("checks: []", "mode: auto", "checks: []"):
        script = f"echo '{text}' > podium.yaml; git add podium.yaml; git reset -q --soft main; git commit -qm loose"
        assert project.run("workspaces", "exec", "fix", "--", "sh", "-c", script).code == 0
        said = project.run("workspaces", "deliver", "fix", "--json")
        assert said.code == 3, said.err
        asked.append(said.json["waiting"]["approval_id"])
        pending = [each["id"] for each in project.run("approvals", "--json").json["approvals"]]
        assert pending == asked[-1:]
    assert len(set(asked)) == 3
    assert project.run("approve", asked[0]).code == 4
    assert project.run("approve", asked[2]).code == 0
    assert project.run("workspaces", "deliver", "fix").code == 0


def planted(desk: Desk, *paths: str) -> list[str]:
    """The guarded files that a person is asked about when an agent's commit writes to these."""
    made(desk)
    script = 'for p; do mkdir -p "$(dirname "$p")"; echo x >> "$p"; done; git add -A; git commit -qm more'
    assert desk.run("workspaces", "exec", "fix", "--", "sh", "-c", script, "sh", *paths).code == 0
    said = desk.run("workspaces", "deliver", "fix", "--json")
    assert said.code == 3, said.out
    assert "bridge/notes.md" not in str(said.json)
    return sorted(said.json["waiting"]["files"])


@pytest.mark.soak
def test_orders_launchers_and_files_that_the_settings_name_wait_for_an_approval(
    project: Desk,
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
def test_a_link_above_the_inbox_waits_for_an_approval(project: Desk) -> None:
    made(project)
    script = "mkdir -p e/inbox/CLC; echo x > e/inbox/CLC/N.yaml; ln -s e bridge; git add -A; git commit -qm more"
    assert project.run("workspaces", "exec", "fix", "--", "sh", "-c", script).code == 0
    said = project.run("workspaces", "deliver", "fix", "--json")
    files = ["bridge (new link)", "e/inbox/CLC/N.yaml (new)"]
    assert (said.code, said.json["waiting"]["files"]) == (3, files)


@pytest.mark.soak
def test_guarded_files_that_a_person_rejects_do_not_come_back(project: Desk) -> None:
    made(project)
    script = "echo 'echo hi' > .envrc; git add .envrc; git commit -qm env"
    assert project.run("workspaces", "exec", "fix", "--", "sh", "-c", script).code == 0
    waiting = project.run("workspaces", "deliver", "fix", "--json").json["waiting"]
    assert project.run("reject", waiting["approval_id"], "--why", "no shells").code == 0
    for _ in range(2):
        said = project.run("workspaces", "deliver", "fix")
        assert said.code == 4
        assert "no shells" in said.err
    assert git(project, "log", "--format=%s", "podium/fix") == "first"
