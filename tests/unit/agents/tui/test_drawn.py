"""Characters of a text that can be looked for on a screen."""

from __future__ import annotations

import pytest

from podium.agents.tui.claude import ClaudeTui
from podium.agents.tui.screen import (
    MEASURED_OTHERWISE,
    end_surely_drawn,
    is_recognisable,
    surely_drawn,
)


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("a plain `line` ^ ~ | 1 < 2\n\tand $3", "aplain`line`^~|1<2and$3"),
        ("up \U0001f44d\U0001f3fd", "up \U0001f44d"),
        ("a \U0001f468\u200d\U0001f469\u200d\U0001f467 b", "a \U0001f468\u200d\U0001f469 b"),
        ("\u2764\ufe0f 1\ufe0f\u20e3", "\u2764 1"),
        ("cafe\u0301 \u00fcber", "caf\u00e9 u\u0308ber"),
        ("a\u200bb\u00a0c", "abc"),
    ],
)
def test_a_text_and_its_picture_come_to_the_same(text: str, drawn: str) -> None:
    assert surely_drawn(text) == surely_drawn(drawn)


@pytest.mark.parametrize("other", ["漢子", "漢字!", "漢字 5 €", "漢字 x"])
def test_characters_digits_and_punctuation_are_distinguished(other: str) -> None:
    assert surely_drawn("漢字") != surely_drawn(other)


@pytest.mark.parametrize(
    ("text", "alone"),
    [
        ("no", True),
        ("漢字", True),
        ("yes, go on 👍", True),
        ("no ✅", False),
        ("1️⃣ 👍", False),
        ("👍 >", False),
        ("", False),
    ],
)
def test_words_are_distinguished_from_others_by_all_or_enough_of_their_characters(
    text: str, alone: bool
) -> None:
    assert is_recognisable(text) is alone


@pytest.mark.parametrize(
    "text", ["", "short", "long \U0001f44d " * 9, "a" + " " * 200, "漢字 " * 50]
)
@pytest.mark.parametrize("length", [1, 5, 60])
def test_the_end_of_what_is_drawn_is_the_end_of_all_of_it(text: str, length: int) -> None:
    assert end_surely_drawn(text, length) == surely_drawn(text)[-length:]


@pytest.mark.parametrize("words", ["\U0001f44d\U0001f3fd", "क्षि", "தமிழ்", "a\tb"])
def test_claude_is_handed_as_a_file_what_it_would_paint_beside(words: str) -> None:
    assert any(sign in words for sign in ClaudeTui.patience.spoilt)


@pytest.mark.parametrize(
    "words", ["漢字 🎭", "ünïcödé", "e\u0301", "🇩🇪 ❤️", "ที่นี่", "한국어", "עברית"]
)
def test_what_is_measured_as_tmux_does_is_pasted(words: str) -> None:
    assert not any(sign in words for sign in MEASURED_OTHERWISE)
