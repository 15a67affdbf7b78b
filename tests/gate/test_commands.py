"""Splitting shell lines: certain, or undecidable with the reason."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.gate import split_command


@pytest.mark.parametrize(
    ("line", "commands"),
    [
        ("git status", [("git", "status")]),
        ("  git\t status  ", [("git", "status")]),
        ("a && b || c; d | e", [("a",), ("b",), ("c",), ("d",), ("e",)]),
        ("ls;", [("ls",)]),
        ("a&&b", [("a",), ("b",)]),
        ("""git commit -m 'a $b `c`'""", [("git", "commit", "-m", "a $b `c`")]),
        ('git commit -m "two words"', [("git", "commit", "-m", "two words")]),
        ('git commit -m "first\n\nsecond"', [("git", "commit", "-m", "first\n\nsecond")]),
        ('git commit -m "Done!"', [("git", "commit", "-m", "Done!")]),
        ("g'i't sta\"tus\"", [("git", "status")]),
        (r"\git status", [("git", "status")]),
        (r"find . -name \*.py", [("find", ".", "-name", "*.py")]),
        (r'grep "\bword\b" a', [("grep", r"\bword\b", "a")]),
        (r'echo "a \"b\" \\ \$c"', [("echo", r'a "b" \ $c')]),
        ("echo ''", [("echo", "")]),
        ("git diff HEAD~1 HEAD^", [("git", "diff", "HEAD~1", "HEAD^")]),
        ("A=1 B=two make", [("A=1", "B=two", "make")]),
        ("echo größe", [("echo", "größe")]),
        ("'if' x", [("if", "x")]),
    ],
)
def test_plain_lines_are_split_into_their_commands(
    line: str, commands: list[tuple[str, ...]]
) -> None:
    assert split_command(line) == (tuple(commands), "")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("echo $HOME", "expansion"),
        ('echo "$HOME"', "expansion"),
        ("echo `id`", "substitution"),
        ('echo "`id`"', "substitution"),
        ("echo $(id)", "expansion"),
        ("cat < a", "redirection"),
        ("echo a > b", "redirection"),
        ("make 2>&1", "redirection"),
        ("cat <<X", "redirection"),
        ("sleep 1 &", "background"),
        ("a & b", "background"),
        ("a |& b", "background"),
        ("ls *.py", "glob"),
        ("ls a?", "glob"),
        ("ls [ab]", "glob"),
        ("echo {a,b}", "brace"),
        ("{ ls; }", "brace"),
        ("(ls)", "parenthesis"),
        ("f() ls", "parenthesis"),
        ("ls ~", "home"),
        ("ls ~ann", "home"),
        ("X=~/a ls", "home"),
        ("ls # all", "comment"),
        ("! ls", "negation"),
        ('echo "!ls"', "negation"),
        ("ls\nrm x", "line break"),
        ("ls \\\nrm", "continuation"),
        ("ls 'a", "not closed"),
        ('ls "a', "not closed"),
        (r'echo "\`id\`"', "escape"),
        ("if true; then ls; fi", "grammar"),
        ("A=1 while true", "grammar"),
        ("'A'=1 ls", "quoted"),
        ("&& ls", "before"),
        ("ls &&", "after"),
        ("ls ;; ls", "before"),
        ("ls |", "after"),
        ("ls\x1b[2K", "invisible"),
        ("ls\u202e x", "invisible"),
        ("ls\u200b", "invisible"),
        ("ls\rrm", "invisible"),
        ("ls\0", "invisible"),
        ("ls ’a’", "unquoted"),
        ("x " * 20_000, "longer"),
        ("a;" * 100, "more than"),
        ("a= " * 10_900 + "ls", "more than"),
        ("ls " + "a " * 2_000, "more than"),
    ],
)
def test_what_a_shell_might_read_otherwise_is_undecidable(line: str, reason: str) -> None:
    commands, undecidable = split_command(line)

    assert commands == ()
    assert reason in undecidable


def steps_of(line: str) -> int:
    """How many calls of functions and methods it takes to split a line."""
    steps = 0

    def count(_frame: object, event: str, _function: object) -> None:
        nonlocal steps
        steps += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        split_command(line)
    finally:
        sys.setprofile(before)
    return steps


@pytest.mark.parametrize("word", ["a= ", "a ", "'a' ", "aaaa", "'b'"])
def test_twice_the_line_takes_twice_the_steps(word: str) -> None:
    assert steps_of(word * 800 + "ls") < 2.2 * steps_of(word * 400 + "ls")


def test_a_line_that_is_far_too_long_is_not_even_begun() -> None:
    assert steps_of("a= " * 33_000 + "ls") < 100


@given(st.text(max_size=60))
def test_any_text_is_either_split_or_given_a_reason(line: str) -> None:
    commands, undecidable = split_command(line)

    assert bool(commands) != bool(undecidable)
    assert all(command for command in commands)


_PIECES = st.sampled_from(
    [
        "a",
        "b1",
        " ",
        "  ",
        "'c d'",
        '"e f"',
        r"\ ",
        r"\"",
        "''",
        "-x",
        "=",
        "./",
        '"\\\\"',
        "~",
        "^",
    ]
)


@given(st.lists(_PIECES, min_size=1, max_size=8).map("".join))
def test_a_real_shell_sees_the_same_words(words: str) -> None:
    shell = shutil.which("sh")
    split = split_command(f"printf %s/ {words}")
    if shell is None or split.undecidable:
        return
    seen = subprocess.run(
        [shell, "-c", f"printf '%s\\0' {words}"], capture_output=True, check=True, cwd="/"
    )
    assert tuple(seen.stdout.decode().split("\0")[:-1]) == (split.commands[0][2:] or ("",))
