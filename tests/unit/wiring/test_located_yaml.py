"""Located YAML: every fault names file, line and key, and no file can hurt the reader."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from podium.config.located import FilePosition
from podium.config.located_yaml import SIZE_LIMIT_BYTES, parse_located, read_located
from podium.core.errors import ConfigInvalid


def fault_of(text: str | bytes) -> str:
    content = text if isinstance(text, bytes) else text.encode()
    with pytest.raises(ConfigInvalid) as caught:
        parse_located(content, "podium.yaml")
    return str(caught.value)


def test_every_key_and_item_knows_its_place() -> None:
    located = parse_located(b"a: 1\nb:\n  c: [x, y]\n", "f")
    assert located.data == {"a": 1, "b": {"c": ["x", "y"]}}
    assert located.positions[("b", "c")] == FilePosition(3, 3)
    assert located.positions[("b", "c", 1)] == FilePosition(3, 10)


def test_a_key_that_is_not_there_is_placed_at_its_parent() -> None:
    located = parse_located(b"a: 1\nb:\n  c: 1\n", "f")
    assert located.position_of(("b", "missing", 3)) == FilePosition(2, 1)


def test_words_that_other_readers_take_for_numbers_and_truth_stay_text() -> None:
    located = parse_located(b"a: no\nb: 010\nc: 12:30\nd: 2024-01-01\non: true\ne: 1e3\n", "f")
    assert located.data == {
        "a": "no",
        "b": "010",
        "c": "12:30",
        "d": "2024-01-01",
        "on": True,
        "e": 1000.0,
    }


def test_all_duplicate_keys_are_reported_at_once_with_their_first_line() -> None:
    words = fault_of("a: 1\nb:\n  c: 1\n  c: 2\na: 3\n")
    assert "podium.yaml:4:3: c: is a duplicate key, first used in line 3" in words
    assert "podium.yaml:5:1: a: is a duplicate key, first used in line 1" in words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\n\tb: 2\n", "podium.yaml:2:1: not valid YAML: found a tab"),
        ("a: 'open\n", "podium.yaml:2:1: not valid YAML"),
        ("a: b: c\n", "podium.yaml:1:5: not valid YAML"),
        ("a: 1\n---\nb: 2\n", "podium.yaml:2:1: contains a second document"),
        ("- a\n- b\n", "podium.yaml:1:1: must be a mapping"),
        ("a: !!python/object:os.system x\n", "podium.yaml:1:4: tag"),
        ("a: *nowhere\n", "alias 'nowhere' has no anchor"),
        ("a: &a [*a]\n", "alias 'a' has no anchor"),
        ("base: {x: 1}\n<<: {y: 2}\n", "podium.yaml:2:1: <<: merge keys"),
        ("? [1, 2]\n: 3\n", "podium.yaml:1:3: a key must be plain text"),
        ("a: 1\nb: \x01\n", "podium.yaml:2: contains a character"),
        (b"a: 1\nb: \xff\xfe\n", "podium.yaml:2: is not valid UTF-8"),
        (b"a: " + b"x" * SIZE_LIMIT_BYTES, "larger than 1000 kB"),
        ("[" * 100_000, "is nested too deeply"),
        ("{" * 100_000, "is nested too deeply"),
        ("- " * 100_000, "is nested too deeply"),
    ],
)
def test_a_broken_file_is_refused_with_its_place(text: str | bytes, words: str) -> None:
    assert words in fault_of(text)


def test_aliases_that_expand_without_end_are_refused_quickly() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    assert "expands to more than" in fault_of("\n".join(lines))


def test_a_modest_alias_is_fine() -> None:
    assert parse_located(b"a: &x [1, 2]\nb: *x\n", "f").data == {"a": [1, 2], "b": [1, 2]}


def test_an_empty_file_holds_nothing() -> None:
    assert parse_located(b"# only words\n", "f").data == {}


def test_a_missing_file_and_one_that_is_no_plain_file_are_faults(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, words in (("nothing", "does not exist"), ("pipe", "not a plain file")):
        with pytest.raises(ConfigInvalid, match=words):
            read_located(tmp_path / name)
