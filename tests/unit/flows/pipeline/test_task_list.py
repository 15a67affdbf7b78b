"""Tasks of a file or of the command line: what is read, what is refused and where, and the order of starting."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.core.errors import BadInput
from podium.jobs.pipeline.task_list import BatchTask, named_tasks, read_tasks, start_order


def written(folder: Path, name: str, text: str | bytes) -> Path:
    file = folder / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tasks.txt", "# Today\n\nFix it\n  Document it  \n"),
        ("tasks.md", "\ufeffFix it\r\nDocument it\r\n"),
        ("tasks.yaml", "- Fix it\n- text: Document it\n"),
        ("tasks.yml", "tasks:\n- Fix it\n- {text: Document it}\n"),
        ("tasks.json", '["Fix it", {"text": "Document it"}]'),
        ("tasks.jsonl", '"Fix it"\n\n{"text": "Document it"}\n'),
    ],
)
def test_every_format_gives_the_same_tasks(tmp_path: Path, name: str, text: str) -> None:
    tasks = read_tasks(written(tmp_path, name, text))
    assert [(task.id, task.text) for task in tasks] == [("1", "Fix it"), ("2", "Document it")]


def test_a_task_has_what_the_file_says_of_it(tmp_path: Path) -> None:
    text = "- {text: Fix it, id: 7, mode: quick, agent: claude, files: [a.py, docs/]}\n"
    (task,) = read_tasks(written(tmp_path, "tasks.yaml", text))
    assert task == BatchTask(
        text="Fix it", id="7", mode="quick", agent="claude", files=("a.py", "docs/")
    )


@pytest.mark.parametrize(
    ("name", "text", "line", "problem"),
    [
        (
            "t.yaml",
            "- Fix it\n- text: x\n  modus: quick\n",
            2,
            "unknown key 'modus'; known keys: text",
        ),
        ("t.yaml", "- Fix it\n-\n  mode: quick\n", 3, "`text:` is missing"),
        ("t.yaml", "- Fix it\n- 7\n", 2, "expected the text of a task"),
        ("t.yaml", "- Fix it\n- text: [a\n", 3, "not valid YAML"),
        ("t.yaml", "- text: x\n  when: !!python/object:os.system {}\n", 2, "not valid YAML"),
        ("t.yaml", "- &a Fix it\n- *a\n", 2, "aliases"),
        ("t.yaml", "\nplan: x\n", 2, "expected a list of tasks"),
        ("t.yaml", "just text\n", 1, "expected a list of tasks"),
        ("t.yaml", "- text: ' '\n", 1, "`text:` string should have at least 1 character"),
        ("t.yaml", f"- text: {'x' * 100_001}\n", 1, "at most 100000 characters"),
        ("t.yaml", "- {text: x, id: a b}\n", 1, "`id:` string should match pattern"),
        ("t.jsonl", '{"text": "a"}\n{"text": \n', 2, "not valid JSON"),
        ("t.jsonl", f'"a"\n{"[" * 100_000}\n', 2, "not valid JSON"),
        ("t.txt", b"Fix it\n\xff\n", 2, "not valid UTF-8"),
    ],
)
def test_a_malformed_file_is_refused_with_its_line(
    tmp_path: Path, name: str, text: str | bytes, line: int, problem: str
) -> None:
    file = written(tmp_path, name, text)
    with pytest.raises(BadInput) as refused:
        read_tasks(file)
    assert str(refused.value).startswith(f"{file}:{line}: ")
    assert problem in str(refused.value)


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("t.txt", "\n# nothing\n", "has no task"),
        ("t.yaml", "", "has no task"),
        ("t.txt", "Fix it\nDo more\nfix   IT\n", "line 3 is the same task as line 1"),
        ("t.yaml", "- {text: a, id: x}\n- {text: b, id: x}\n", "line 2 has the id 'x' of line 1"),
        ("t.txt", "\n".join(f"Task {n}" for n in range(101)), "101 tasks, more than 100"),
        ("t.txt", "x" * 2_000_001, "is larger than"),
    ],
)
def test_a_file_of_wrong_tasks_is_refused(
    tmp_path: Path, name: str, text: str, problem: str
) -> None:
    with pytest.raises(BadInput, match=problem):
        read_tasks(written(tmp_path, name, text))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"none\.txt' cannot be read: No such file"):
        read_tasks(tmp_path / "none.txt")


def test_the_same_task_twice_on_the_command_line_is_refused() -> None:
    with pytest.raises(BadInput, match="task 2 is the same task as task 1; remove one of them"):
        named_tasks(["Fix it", "fix  it"])


def test_tasks_with_common_files_are_started_apart() -> None:
    files = ["a.py", "a.py", "docs/guide.md", "docs/", "b.py", ""]
    tasks = [
        BatchTask(text=str(number), files=(name,) if name else ())
        for number, name in enumerate(files)
    ]
    assert start_order(tasks, 2) == (0, 2, 1, 3, 4, 5)
    assert start_order(tasks, 1) == (0, 1, 2, 3, 4, 5)
    assert start_order(tasks[:2], 4) == (0, 1)
