"""Gemini CLI's screens, as they were seen: what stands in its composer, what it is at, what it asks."""

from __future__ import annotations

import pytest

from podium.agents.tui.adapter import Status
from podium.agents.tui.gemini import GeminiTui
from podium.agents.tui.screen import Composer, TerminalScreen

RULE = "─" * 100
HINT = [RULE, " Shift+Tab to accept edits", RULE]
FOOTER = [
    RULE,
    " workspace (/directory)     sandbox     /model",
    " /home/x     untrusted     flash",
]
UNTRUSTED = [
    "",
    "ℹ This folder is untrusted, project settings, hooks, MCPs, and GEMINI.md files will not be",
    "  applied for this folder.",
    "",
]
TALK = ["> hello", "", "✦ Hello to you.", ""]
EMPTY = [" >   Type your message or @path/to/file"]
READY, WORKING = "◇  Ready (work)", "✦  Working… (work)"
BOX = [
    "╭──────────────────────────────╮",
    "│ ?  A potential loop was      │",
    "│ detected                     │",
    "│ ● 1. Keep it (esc)           │",
    "╰──────────────────────────────╯",
]


def screen(*lines: str, title: str = READY) -> TerminalScreen:
    return TerminalScreen(
        lines=tuple(lines),
        columns=100,
        rows=30,
        cursor=(3, 10),
        alternate=False,
        in_mode=False,
        dead=False,
        exit_code=None,
        title=title,
    )


def composing(*typed: str, above: list[str] = TALK, title: str = READY) -> TerminalScreen:
    return screen(*above, *HINT, *typed, *FOOTER, title=title)


SHORT = "do this\nand that"
LONG_LINE = "word " * 90


@pytest.mark.parametrize(
    ("typed", "words", "seen"),
    [
        (EMPTY, SHORT, "empty"),
        ([" > do this", "   and that"], SHORT, "ours"),
        ([" > do this", "   and that"], f"{SHORT} ", "ours"),
        ([" > do this", "   and that", ""], SHORT, "unsent"),
        ([" > do this", "   and that", ""], f"{SHORT}\n", "ours"),
        ([" > [Pasted Text: 6 lines]", ""], "1\n2\n3\n4\n5\n6", "unsent"),
        ([" > do this"], SHORT, "other"),
        ([" > a draft of a person"], SHORT, "other"),
        (
            [" > the \U0001f468\u200d\U0001f469 goes"],
            "the \U0001f468\u200d\U0001f469\u200d\U0001f467 goes",
            "ours",
        ),
        ([" > [Pasted Text: 6 lines]"], "1\n2\n3\n4\n5\n6", "ours"),
        ([" > [Pasted Text: 6 lines #2]"], "1\n2\n3\n4\n5\n6", "ours"),
        ([" > [Pasted Text: 7 lines]"], "1\n2\n3\n4\n5\n6", "other"),
        ([" > [Pasted Text: 501 chars]"], "x" * 501, "ours"),
        ([" > [Pasted Text: 501 chars]"], SHORT, "other"),
        ([" > [Pasted Text: 6 lines] and more"], "1\n2\n3\n4\n5\n6", "other"),
        ([f" > {LONG_LINE[:90]}", f"   {LONG_LINE[90:180]}"], LONG_LINE, "ours"),
        ([" ! ls"], "ls", "unseen"),
    ],
)
def test_text_in_the_composer_is_recognised_by_the_words(
    typed: list[str], words: str, seen: Composer
) -> None:
    assert GeminiTui().composer(composing(*typed), words) == seen


def test_its_own_words_are_not_taken_for_its_composer() -> None:
    messages = [RULE, " > do this", RULE]
    assert GeminiTui().composer(screen(*messages, *BOX), "do this") == "unseen"
    assert GeminiTui().composer(composing(*EMPTY, above=messages), "do this") == "empty"


@pytest.mark.parametrize(
    ("shown", "status"),
    [
        (screen(), "starting"),
        (composing(*EMPTY, above=["", ""]), "starting"),
        (composing(*EMPTY, above=UNTRUSTED), "ready"),
        (composing(*EMPTY, above=UNTRUSTED, title="◇  Ready (resumed: work)"), "starting"),
        (composing(*EMPTY, title="◇  Ready (resumed: work)"), "ready"),
        (screen(*TALK, " Resuming session...", RULE, " Shift+Tab", *FOOTER[1:]), "starting"),
        (composing(*EMPTY), "ready"),
        (composing(*EMPTY, title=WORKING), "busy"),
        (composing(*EMPTY, title="⏲  Working… (work)"), "busy"),
        (screen(*TALK, *BOX), "asking"),
        (screen(*TALK, *BOX, title=WORKING), "asking"),
        (composing(*EMPTY, above=[*TALK, *BOX]), "ready"),
        (screen(*TALK, title="✋  Action Required (work)"), "asking"),
    ],
)
def test_what_it_is_at_is_seen_by_title_composer_and_boxes(
    shown: TerminalScreen, status: Status
) -> None:
    assert GeminiTui().status(shown) == status


def test_nothing_is_pasted_while_it_only_comes_up() -> None:
    assert GeminiTui().composer(composing(*EMPTY, above=[""]), "x") == "unseen"


def test_question_is_shown_in_one_line_without_its_frame() -> None:
    asked = GeminiTui().question(screen(*TALK, *BOX))
    assert asked == "? A potential loop was detected ● 1. Keep it (esc)"


def test_what_an_earlier_painting_left_below_does_not_hide_its_composer() -> None:
    shown = screen(*TALK, *HINT, *EMPTY, *FOOTER, "", *FOOTER)
    assert GeminiTui().status(shown) == "ready"
    assert GeminiTui().composer(shown, SHORT) == "empty"
