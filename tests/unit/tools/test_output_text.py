from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from podium.core.decisions import CallOutcome
from podium.tools.output_text import OutputCleaner, bound, clean_outcome, plain_text

JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=400),
    lambda inner: (
        st.lists(inner, max_size=12) | st.dictionaries(st.text(max_size=12), inner, max_size=12)
    ),
    max_leaves=40,
)


def test_what_fits_is_left_as_it_is() -> None:
    value = {"a": [1, "two", None], "b": "three"}

    assert bound(value, 1000) is value


def test_a_long_text_keeps_its_beginning_and_its_end_and_says_how_long_it_was() -> None:
    cut = bound("BEGIN" + "x" * 5000 + "END", 600)

    assert cut.startswith("BEGIN")
    assert cut.endswith("END")
    assert "[cut: 5008 bytes in all]" in cut
    assert len(cut) <= 600


def test_the_small_fields_of_a_result_survive_a_large_one() -> None:
    cut = bound({"stdout": "x" * 50_000, "exit_code": 1, "stderr": "why"}, 2000)

    assert list(cut) == ["stdout", "exit_code", "stderr"]
    assert (cut["exit_code"], cut["stderr"]) == (1, "why")
    assert "[cut: 50000 bytes in all]" in cut["stdout"]


def test_a_long_list_keeps_whole_items() -> None:
    cut = bound({"files": [f"file{number}" for number in range(1000)]}, 1000)

    assert cut["files"][:2] == ["file0", "file1"]
    assert cut["files"][-1] == "[cut: 1000 items in all]"


@settings(deadline=None)
@given(JSONS, st.integers(min_value=200, max_value=3000))
def test_what_is_cut_always_fits_and_stays_json(value: object, limit: int) -> None:
    cut = bound(value, limit)

    assert len(json.dumps(cut, ensure_ascii=False).encode()) <= limit


def test_terminal_escapes_and_control_characters_go_and_line_ends_stay() -> None:
    hostile = "\x1b[31mred\x1b[0m \x1b]0;title\x07\x1b]8;;http://x.test\x1b\\link \x9b2J\x00\x08a\rb\r\nc\td"

    assert plain_text(hostile) == "red link ab\r\nc\td"


def test_half_a_character_cannot_break_the_store() -> None:
    assert plain_text("name\udcff") == "name?"


def test_a_secret_hidden_behind_an_escape_or_at_the_cut_is_redacted() -> None:
    def redact(text: str) -> str:
        return text.replace("s3cret-s3cret", "***")

    outcome = CallOutcome(
        ok=False,
        result={"out": "x" * 100 + " s3cret-\x1b[0ms3cret " + "y" * 900, "s3cret-s3cret": 1},
        error="s3cret-\x00s3cret",
    )

    for limit in range(150, 1200, 7):
        shown = clean_outcome(outcome, OutputCleaner(redact), limit)
        assert "s3cret" not in json.dumps(shown.result)
        assert shown.error == "***"


def test_a_cleaner_is_asked_again_for_the_same_text_and_never_gives_it_as_it_was() -> None:
    cleaner = OutputCleaner(lambda text: text.replace("s3cret", "***"))
    hostile = ("a s3cret", "a s3\x1b[0mcret", "s3cret " * 50, "a s3cret")

    output_text = [cleaner.text(text) for text in hostile * 2]

    assert output_text == ["a ***", "a ***", "*** " * 50, "a ***"] * 2
