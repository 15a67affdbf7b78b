"""Lines for a run that nothing confines: plain words alone, or a reason why they are not."""

from __future__ import annotations

import gc
import shutil
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.policy import split_command
from podium.policy.shell import read_line


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
    ],
)
def test_plain_lines_are_split_into_their_commands(
    line: str, commands: list[tuple[str, ...]]
) -> None:
    assert split_command(line) == (tuple(commands), "")
    assert read_line(line).beyond_plain is None


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("ls 'a", "it is incomplete"),
        ('ls "a', "it is incomplete"),
        ("A=1 while true", "used as a program name"),
        ("'if' x", "used as a program name"),
        ("'A'=1 ls", "quoted"),
        ("&& ls", "it is incomplete"),
        ("ls &&", "it is incomplete"),
        ("ls ;; ls", "not"),
        ("ls |", "it is incomplete"),
        ("ls\x1b[2K", "invisible"),
        ("ls\u202e x", "invisible"),
        ("ls\u200b", "invisible"),
        ("ls\rrm", "invisible"),
        ("ls\0", "invisible"),
        ("x " * 70_000, "longer"),
        ("a;" * 300, "more than"),
        ("a= " * 10_900 + "ls", "more than"),
        ("ls " + "a " * 2_000, "more than"),
    ],
)
def test_what_cannot_be_read_at_all_comes_with_its_reason(line: str, reason: str) -> None:
    commands, undecidable = split_command(line)

    assert commands == ()
    assert reason in undecidable


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("echo $HOME", "expansion"),
        ('echo "$HOME"', "expansion"),
        ("echo `id`", "substitution"),
        ('echo "`id`"', "substitution"),
        ("echo $(id)", "expansion"),
        ("cat < a", "redirection"),
        ("echo a > b", "redirection"),
        ("make 2>&1", "redirection"),
        ("cat <<X\nX", "line break"),
        ("sleep 1 &", "background"),
        ("a & b", "background"),
        ("a |& b", "background"),
        ("ls *.py", "glob"),
        ("ls a?", "glob"),
        ("ls [ab]", "glob"),
        ("echo {a,b}", "brace"),
        ("{ ls; }", "brace"),
        ("(ls)", "parenthesis"),
        ("f() { ls; }", "parenthesis"),
        ("ls ~", "home"),
        ("ls ~ann", "home"),
        ("X=~/a ls", "home"),
        ("ls # all", "comment"),
        ("! ls", "negation"),
        ('echo "!ls"', "negation"),
        ("ls\nrm x", "line break"),
        ("ls \\\nrm", "continuation"),
        (r'echo "\`id\`"', "escape"),
        ("if true; then ls; fi", "grammar"),
        ("ls ’a’", "unquoted"),
        ("x " * 900 + "a" * 32_000, "longer"),
        ("a;" * 100, "more than"),
        ("echo a | xargs ls", "does not show"),
        ("eval ls", "does not show"),
        ("source x/bin/activate", "does not show"),
        ("trap 'ls' EXIT", "changes the shell"),
        ("find . -exec ls ';'", "only list"),
        ("bash -c 'echo $1'", "expansion"),
        ("bash -c ls x", "use -c alone"),
        ("sh <<< ls", "redirection"),
    ],
)
def test_what_only_a_confined_run_may_do_is_distinguished(line: str, reason: str) -> None:
    beyond = read_line(line).beyond_plain

    assert beyond is not None
    assert reason in beyond.reason


def steps_of(line: str) -> int:
    """Return the number of function and method calls it takes to read a line."""
    steps = 0

    def count(_frame: object, event: str, _function: object) -> None:
        nonlocal steps
        steps += event in ("call", "c_call")

    read_line.__wrapped__(line)  # what is done once, such as imports, does not count
    before = sys.getprofile()
    gc.disable()
    sys.setprofile(count)
    try:
        read_line.__wrapped__(line)
    finally:
        sys.setprofile(before)
        gc.enable()
    return steps


@pytest.mark.parametrize("word", ["a= ", "a ", "'a' ", "aaaa", "'b'", "$x ", "*", "{a,b} ", "\\\n"])
def test_twice_the_line_takes_twice_the_steps(word: str) -> None:
    assert steps_of(word * 800 + "ls") < 2.2 * steps_of(word * 400 + "ls")


def test_a_line_that_is_far_too_long_is_not_even_begun() -> None:
    assert steps_of("a= " * 60_000 + "ls") < 100


@given(st.text(max_size=60))
def test_any_text_is_either_split_or_given_a_reason(line: str) -> None:
    commands, undecidable = split_command(line)

    assert bool(commands) != bool(undecidable)
    assert all(command for command in commands)


_PIECES = st.sampled_from(
    [
        "a", "b1", " ", "  ", "'c d'", '"e f"', r"\ ", r"\"", "''", "-x", "=", "./", '"\\\\"', "~", "^",
        "\\\n", "'\n'", '"$"', "{", "}", "#", "!", "'#'", "a#",
    ]
)  # fmt: skip


@given(st.lists(_PIECES, min_size=1, max_size=8).map("".join))
def test_a_real_shell_sees_the_same_words(words: str) -> None:
    shell = shutil.which("sh")
    reading = read_line(f"printf %s/ {words}")
    if shell is None or reading.refusal or reading.beyond_plain:
        return
    seen = subprocess.run(
        [shell, "-c", f"printf '%s\\0' {words}"], capture_output=True, check=True, cwd="/"
    )
    assert tuple(seen.stdout.decode().split("\0")[:-1]) == (reading.commands[0].argv[2:] or ("",))
