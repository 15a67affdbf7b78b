"""Codex's tool hook: which questions it asks, and that everything but a yes is a no."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from podium.agents.headless.codex import hook as codex_hook
from podium.agents.headless.codex.hook import MAX_CHANGES, Denied, changes_in, questions
from podium.agents.headless.codex.tools import Judged

HOOK = Path(codex_hook.__file__)
EVENT: dict[str, Any] = {
    "hook_event_name": "PreToolUse",
    "cwd": "/w",
    "tool_name": "Bash",
    "tool_input": {"command": "ls"},
    "tool_use_id": "u1",
}


def run_hook(
    tmp_path: Path, event: Any, answer: str, *, script: bool = False
) -> subprocess.CompletedProcess[str]:
    """The hook, with a hook command that runs these lines of Python, or a script of them."""
    given = event if isinstance(event, str) else json.dumps(event)
    command = [sys.executable, "-c", answer]
    if script:
        (tmp_path / "client.py").write_text(answer)
        command = [sys.executable, "-IS", str(tmp_path / "client.py")]
    return subprocess.run(
        [sys.executable, "-IS", str(HOOK), *command],
        input=given,
        env={"CODEX_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("script", [False, True])
def test_a_yes_is_silent(tmp_path: Path, script: bool) -> None:
    """Codex takes a spoken allow for a broken hook."""
    answer = "import sys; sys.exit(0 if 'u1' in sys.stdin.read() and not print('{}') else 1)"
    done = run_hook(tmp_path, EVENT, answer, script=script)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("script", [False, True])
def test_a_no_is_handed_on_with_its_reason(tmp_path: Path, script: bool) -> None:
    answer = "import sys; sys.stderr.write('why\\n'); sys.stderr.flush(); sys.exit(2)"
    done = run_hook(tmp_path, EVENT, answer, script=script)
    assert (done.returncode, done.stderr) == (2, "why\n")


@pytest.mark.sample(2)
@pytest.mark.parametrize("script", [False, True])
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("import sys; sys.stderr.write('no newline'); sys.exit(2)", "no newline"),
        ("import sys; sys.stderr.write(' \\n'); sys.exit(2)", "podium: Permission Denied, w"),
        ("import sys; sys.exit(2)", "podium: Permission Denied, without a reason"),
    ],
)
def test_a_no_never_goes_without_a_reason(
    tmp_path: Path, answer: str, reason: str, script: bool
) -> None:
    """Codex goes on after a no that says nothing."""
    done = run_hook(tmp_path, EVENT, answer, script=script)
    assert done.returncode == 2
    assert done.stderr.startswith(reason)


@pytest.mark.parametrize("script", [False, True])
@pytest.mark.parametrize(
    "answer",
    [
        "raise SystemExit(1)",
        "raise SystemExit('words')",
        "1 / 0",
        "no python",
        "import os; os.abort()",
        "import os; os.kill(os.getpid(), 9)",
    ],
)
def test_a_hook_command_that_breaks_means_no(tmp_path: Path, answer: str, script: bool) -> None:
    done = run_hook(tmp_path, EVENT, answer, script=script)
    assert done.returncode == 2
    assert "denied" in done.stderr


@pytest.mark.parametrize(
    "event", ["", "not json", "[]", "{}", '{"tool_name": "Bash", "tool_input": {}}', "null"]
)
def test_an_event_that_cannot_be_read_means_no(tmp_path: Path, event: str) -> None:
    assert run_hook(tmp_path, event, "pass").returncode == 2


def test_a_hook_command_that_is_not_there_means_no(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-IS", str(HOOK), "/nowhere/hook"],
        input=json.dumps(EVENT),
        env={"CODEX_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2


def test_one_no_among_several_questions_means_no(tmp_path: Path) -> None:
    patch = "*** Begin Patch\n*** Add File: a\n+x\n*** Add File: b\n+y\n*** End Patch"
    event = {**EVENT, "tool_name": "apply_patch", "tool_input": {"command": patch}}
    answer = "import json, sys; sys.exit(2 if json.load(sys.stdin)['tool_use_id'] == 'u1#1' else 0)"
    for script in (False, True):
        assert run_hook(tmp_path, event, answer, script=script).returncode == 2
        assert run_hook(tmp_path, event, "pass", script=script).returncode == 0


def test_a_large_patch_goes_through(tmp_path: Path) -> None:
    patch = "*** Begin Patch\n*** Add File: a\n" + "+x\n" * 100_000 + "*** End Patch"
    event = {**EVENT, "tool_name": "apply_patch", "tool_input": {"command": patch}}
    answer = "import sys; sys.exit(0 if len(sys.stdin.read()) > 300_000 else 1)"
    assert run_hook(tmp_path, event, answer).returncode == 0


def test_a_question_has_no_name_that_a_command_could_find(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "memfd_create", raising=False)  # as on macOS
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    descriptor = codex_hook._readable(b"question")
    try:
        assert os.read(descriptor, 100) == b"question"
        assert list(tmp_path.iterdir()) == []
    finally:
        os.close(descriptor)


def test_the_folder_of_a_command_is_part_of_the_question() -> None:
    (question,) = questions({**EVENT, "cwd": "/w/sub"})
    assert question["tool_input"] == {"command": "ls", "cwd": "/w/sub", "use": "u1"}


@pytest.mark.parametrize(
    ("patch", "files"),
    [
        ("*** Add File: a\n+x", [("add", "/w/a")]),
        ("*** Delete File: /etc/passwd", [("delete", "/etc/passwd")]),
        ("  *** Delete File:   b  \r", [("delete", "/w/b")]),
        ("***  Add File: a\n*** Add File: b", [("add", "/w/b")]),
        ("*** Update File: a\n@@\n *** Delete File: c\n", [("update", "/w/a"), ("delete", "/w/c")]),
        ("*** Add File: a\n+*** Add File: b", [("add", "/w/a")]),
        (
            "*** Update File: a\n*** Move to: ../b\n@@\n-x",
            [("update", "/w/a"), ("delete", "/w/a"), ("move", "/w/../b")],
        ),
    ],
)
def test_files_of_a_patch(patch: str, files: list[tuple[str, str]]) -> None:
    found = changes_in(f"*** Begin Patch\n{patch}\n*** End Patch", "/w")
    assert [(change["operation"], change["path"]) for change in found] == files


@pytest.mark.parametrize("patch", ["", "*** Begin Patch\n*** End Patch", "nothing of the kind"])
def test_a_patch_without_files_is_denied(patch: str) -> None:
    with pytest.raises(Denied):
        changes_in(patch, "/w")


def test_a_patch_of_too_many_files_is_denied() -> None:
    with pytest.raises(Denied, match="send several"):
        changes_in("*** Delete File: a\n" * (MAX_CHANGES + 1), "/w")


@pytest.mark.parametrize(
    ("tool", "arguments", "registered"),
    [
        ("Bash", {"command": "ls", "cwd": "/w"}, ("run_command", {"command": "ls", "cwd": "."})),
        ("Bash", {"command": "ls", "cwd": "/w/a"}, ("run_command", {"command": "ls", "cwd": "a"})),
        ("Bash", {"command": "ls", "cwd": "/x"}, ("run_command", {"command": "ls", "cwd": "/x"})),
        ("view_image", {"path": "a.png"}, ("read_file", {"path": "a.png"})),
        ("web_search", {"query": "q"}, ("web_search", {"query": "q"})),
        ("mcp__t__poke", {"x": 1}, ("own_tool", {"name": "mcp__t__poke", "arguments": {"x": 1}})),
        (
            "collaborationspawn_agent",
            {"task_name": "sub", "message": "go"},
            (
                "ask_subagent",
                {"name": "collaborationspawn_agent", "task": 'go\n{"task_name": "sub"}'},
            ),
        ),
        (
            "apply_patch",
            {"operation": "add", "path": "/w/a", "change": "+x\n+y\n*** End Patch\n"},
            ("write_file", {"path": "a", "content": "x\ny\n"}),
        ),
        (
            "apply_patch",
            {"operation": "update", "path": "/w/../a", "change": "@@\n-x\n"},
            ("edit_file", {"path": "/w/../a", "change": "@@\n-x\n"}),
        ),
        (
            "apply_patch",
            {"operation": "delete", "path": "/w/a"},
            ("delete_file", {"path": "a"}),
        ),
    ],
)
def test_codexs_tools_in_the_registrys_words(
    tool: str, arguments: dict[str, Any], registered: tuple[str, dict[str, Any]]
) -> None:
    assert Judged("/w").translate(tool, {**arguments, "use": "u1"}) == registered


def test_plans_are_notes() -> None:
    assert Judged("/w").translate("update_plan", {"plan": []})[0] == "keep_notes"


PATCHES = [
    ("add", "+a\n+b\n"),
    ("add", "+a\u2028+b\n"),
    ("add", "+a\rb\n"),
    ("add", "+a\n*** Environment: b\n"),
    ("update", "@@\n-a\n+b\n"),
    ("update", "@@\n-a\n+b\n*** End of File\n"),
    ("update", "+" + "x" * 150_000 + "a"),
    ("update", "+" + "x" * 150_000 + "b"),
    ("update", "+" + "x" * 600_000 + "a"),
    ("update", "+" + "x" * 600_000 + "b"),
]


def test_no_two_changes_make_the_same_call() -> None:
    """Else a person who approves one of them approves the other."""
    judged = Judged("/w")
    calls = [
        judged.translate("apply_patch", {"operation": how, "path": "/w/a", "change": change})
        for how, change in PATCHES
    ]
    assert len({repr(call) for call in calls}) == len(PATCHES)
    assert max(len(repr(call)) for call in calls) < 501_000


def test_an_inner_agent_has_no_name_of_the_models_choice() -> None:
    """A role may grant agents by name, and the model would name its own like one of those."""
    payload = {"task_name": "web_search", "message": "go"}
    assert Judged("/w").translate("spawn_agent", payload)[1]["name"] == "spawn_agent"


BODY = "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\n"


@pytest.mark.parametrize(
    ("command", "path"),
    [
        (f"apply_patch <<'EOF'\n{BODY}EOF", "/w/a"),
        (f'applypatch << "END"\n{BODY}END\n', "/w/a"),
        (f"  cd sub/part && apply_patch <<EOF\n{BODY}EOF\n", "/w/sub/part/a"),
        (f"cd /etc && apply_patch <<'EOF'\n{BODY}EOF", "/etc/a"),
    ],
)
def test_a_patch_in_a_line_of_shell_is_asked_for_as_what_it_changes(
    command: str, path: str
) -> None:
    (question,) = questions({**EVENT, "cwd": "/w", "tool_input": {"command": command}})
    assert (question["tool_name"], question["tool_use_id"]) == ("apply_patch", "u1#0")
    asked = {"operation": "add", "path": path, "use": "u1"}
    given = question["tool_input"]
    assert isinstance(given, dict)
    assert given | asked == given


@pytest.mark.parametrize(
    "command",
    [
        f"apply_patch <<'EOF'\n{BODY}EOF\ntouch b",
        f"apply_patch <<'EOF'\n{BODY}EOF\ntouch b\nEOF",
        f"touch b && apply_patch <<'EOF'\n{BODY}EOF",
        f"touch b\napply_patch <<'EOF'\n{BODY}EOF",
        f"apply_patch <<EOF\n{BODY.replace('+x', '+$(touch b)')}EOF",
        f"cd $HOME && apply_patch <<'EOF'\n{BODY}EOF",
        f"apply_patch '{BODY}'",
        "apply_patch < file.patch",
        "(apply_patch < file.patch)",
        "'apply_patch' < file.patch",
    ],
)
def test_a_patch_that_is_not_all_of_the_line_is_denied_in_words(command: str) -> None:
    with pytest.raises(Denied, match="use the apply_patch tool"):
        questions({**EVENT, "cwd": "/w", "tool_input": {"command": command}})


@pytest.mark.parametrize("command", ["grep apply_patch README", "git apply x.patch", "patch -p1"])
def test_a_line_that_only_speaks_of_patches_is_a_command(command: str) -> None:
    (question,) = questions({**EVENT, "cwd": "/w", "tool_input": {"command": command}})
    assert question["tool_name"] == "Bash"
