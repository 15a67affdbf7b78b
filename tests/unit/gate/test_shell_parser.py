"""Reading shell lines by the grammar: every command, where it stands, what it opens."""

from __future__ import annotations

import pytest

from podium.core.decisions import Access
from podium.policy.shell import COMPUTED, printable, read_line, split_command


def programs(line: str) -> list[str]:
    reading = read_line(line)
    assert reading.refusal is None, reading.refusal
    return [" ".join(map(printable, command.argv)) for command in reading.commands if command.argv]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("a $(b `c`)", ["c", "b …", "a …"]),
        ('a "x $(b)"', ["b", "a x …"]),
        ("a <(b) >(c)", ["b", "c", "a /dev/fd/63 /dev/fd/63"]),
        ("a ${x:-$(b)}", ["b", "a …"]),
        ("a $(( $(b) + 1 ))", ["b", "a …"]),
        ("x=$(a) b", ["a", "b"]),
        ("x=($(a) $(b))", ["a", "b"]),
        ("if a; then b; elif c; then d; else e; fi", ["a", "b", "c", "d", "e"]),
        ("while a; do b; done; until c; do d; done", ["a", "b", "c", "d"]),
        ("for x in $(a); do b; done", ["a", "b"]),
        ("for ((i=0; i<2; i++)); do a; done", ["a"]),
        ("case $(a) in x) b ;; *) c ;; esac", ["a", "b", "c"]),
        ("f() { a; }; f", ["a", "f"]),
        ("(a; b) & { c; } | d", ["a", "b", "c", "d"]),
        ("! a && time b", ["a", "b"]),
        ("bash -c 'a; b \"$1\"' x y", ["a", "b …"]),
        ("bash <<'E'\na\nb\nE", ["a", "b"]),
        ("sh <<< 'a b'", ["a b"]),
        ("eval 'a; b'", ["a", "b"]),
        ("trap 'a' EXIT; b", ["true", "a", "b"]),
        ("env X=1 nice -n 5 timeout 3 a b", ["a b"]),
        ("a | xargs -0 -n1 b c", ["a", "b c …"]),
        ("a | xargs -I{} b x{} d", ["a", "b x… d"]),
        ("find . -name '*.c' -exec a {} +", ["find . -name *.c", "a ./*.c"]),
        ("find d e -exec a {} ';' -ok b ';'", ["find d e", "a d/* e/*", "b"]),
        ("cat <<E\n$(a)\nE", ["a", "cat"]),
        ("a <<'E' 2>&1 | b\n$(c)\nE\nd", ["a", "b", "d"]),
        ("a {b,c}d x{1..3}", ["a bd cd x1 x2 x3"]),
        ('D=out; a "$D/x" $HOME/y', ["a out/x ~/y"]),
        ("for x in b c; do a $x; done", ["a b c"]),
        ("gi\\\nt sta\\\ntus", ["git status"]),
        ("a # b; c\nd", ["a", "d"]),
    ],
)
def test_every_command_of_a_line_is_found(line: str, found: list[str]) -> None:
    assert programs(line) == found


@pytest.mark.parametrize(
    ("line", "opened"),
    [
        ("a > b 2>&1", [("b", Access.WRITE)]),
        ("a >> b < c", [("b", Access.WRITE), ("c", Access.READ)]),
        ("a &> b", [("b", Access.WRITE)]),
        ("a >| b", [("b", Access.WRITE)]),
        ("> b", [("b", Access.WRITE)]),
        ("{ a; } > b", [("b", Access.WRITE)]),
        ("x && a > b", [("b", Access.WRITE)]),
        ("x | a > b", [("b", Access.WRITE)]),
        ("a 2>/dev/null >&2", [("/dev/null", Access.WRITE)]),
        ("a > $X", [(COMPUTED, Access.WRITE)]),
        ("a <<'E' > b\nx\nE", [("b", Access.WRITE)]),
        ("[[ a > b ]]", [("b", Access.WRITE)]),
        ("x=$(< a)", [("a", Access.READ)]),
    ],
)
def test_files_that_the_shell_opens_are_found(line: str, opened: list[tuple[str, Access]]) -> None:
    reading = read_line(line)

    assert reading.refusal is None
    assert [tuple(r) for command in reading.commands for r in command.redirects] == opened


@pytest.mark.parametrize(
    "line",
    [
        "echo `a \\`b\\``",
        "echo ${x:-`a`}",
        "echo \"${x:-'$(a)'}\"",
        "cat <<E\n`a`\nE",
        "cat <<E\n${x:-$(a)}\nE",
        "cat <<A <<B\nx\nA\ny\nB",
        "time { a; }",
        "coproc X { a; }",
        "! { a; }",
        "((a b))",
        "x='a[$(b)]'; echo $((x))",
        "echo ${x@P}",
        "select x in a; do b; done",
        "a+=/b c",
        "*A=1 b",
        "\\ a",
        "a#b=1 c",
        "a <> b",
        "$X a",
        "/usr/bin/g?t a",
        "timeout $T a",
        'bash -c "$X"',
        "eval $X",
        'trap "$X" EXIT',
        "source x.sh",
        "ls() { a; }",
        "env -S 'a b'",
        "find . -exec a",
        "bash <<E\n$X\nE",
    ],
)
def test_what_may_mean_more_than_it_shows_is_refused(line: str) -> None:
    assert read_line(line).refusal is not None


def test_a_cd_ends_with_its_subshell_and_a_redirection_belongs_to_the_last_command() -> None:
    first, second, third = read_line("(cd a && b > c); d").commands

    assert first.scope == second.scope != third.scope == ()
    assert second.after_success
    assert [redirect.target for redirect in second.redirects] == ["c"]


def test_a_quoted_here_document_is_text_and_nothing_else() -> None:
    line = "cat > a.md <<'EOF'\nuse `make` and $(this)\n'quotes\" and ) too\nEOF\nls"

    assert programs(line) == ["cat", "ls"]


def test_something_that_only_looks_like_a_here_document_hides_nothing() -> None:
    line = "echo '<<EOF'\ngit checkout evil\necho EOF"

    assert "git checkout evil" in programs(line)


@pytest.mark.parametrize(
    "line",
    [
        "cat <<A <<B <<C " * 7_500,
        "cat <<A\n" * 4_000,
        "a|" * 16_000,
        "a=( " * 8_000,
        "${a:-" + "a " * 16_000,
        "cat <<A\n" + "$(a) " * 25_000 + "\nA",
    ],
)
def test_a_line_that_would_take_long_to_read_is_not_read(line: str) -> None:
    why = split_command(line).undecidable
    assert "more than" in why or "longer than" in why or "too long" in why


@pytest.mark.parametrize(
    "line",
    [
        "echo $(" * 300 + "a" + ")" * 300,
        "true && " * 600 + "true",
        "if a; then " * 300 + "b" + "; fi" * 300,
        "echo $((" + "1+" * 3_000 + "1))",
        "echo $((" + "- " * 3_000 + "1))",
        "bash -c '" + "if a; then " * 300 + "b" + "; fi" * 300 + "'",
    ],
)
def test_a_line_too_deep_to_read_is_undecidable_in_words(line: str) -> None:
    found = split_command(line)
    assert found.commands == ()
    assert "than" in found.undecidable or "too deep" in found.undecidable


def test_a_long_chain_of_commands_is_read_in_order() -> None:
    names = [f"c{count}" for count in range(200)]
    assert programs(" && ".join(names)) == names


def test_a_long_here_document_is_no_reason_to_refuse() -> None:
    body = "cout << x << (y | z);\n" * 5_000
    assert programs(f"cat > a.cc <<'E'\n{body}E\nmake a") == ["cat", "make a"]
