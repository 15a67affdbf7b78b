"""Messages in what agents write: which there are, what is their body, and what only looks like one."""

from __future__ import annotations

import json

import pytest

from podium.agents.contract import read_messages
from podium.agents.contract.messages import MAX_BODY, MAX_IGNORED, MAX_MESSAGES
from podium.core.turns import MessageBlock
from tests.linear_cost import assert_linear_cost

CLOSE = "[[/POLI:MSG]]"


def opening(id_: str = "T-1", to: str = "EXECUTER", type_: str = "plan", **more: object) -> str:
    return "[[POLI:MSG " + json.dumps({"to": to, "type": type_, "id": id_, **more}) + "]]"


OPEN = opening()


def bodies(text: str, columns: int = 0) -> list[str]:
    return [message.body for message in read_messages(text, columns=columns).messages]


def faults(text: str) -> list[str]:
    return [item.why for item in read_messages(text).ignored]


def test_a_message_says_whom_it_is_for_what_it_is_and_its_text_to_the_byte() -> None:
    body = "  1. *read* `a`\t\n\n2. é漢字🙂 ]] [[ }  "

    messages = read_messages(f"I think so.\n{OPEN}\n<PLAN>\n{body}\n</PLAN>\n{CLOSE}\nDone.")

    assert messages.messages == (MessageBlock(to="EXECUTER", type="plan", id="T-1", body=body),)
    assert messages.ignored == ()


def test_several_messages_come_in_their_order() -> None:
    status, result = opening(type_="status", to="PLANNER"), opening(type_="result", to="PLANNER")
    text = f"{status}\n<STATUS>half</STATUS>\n{CLOSE}\n{result}\na\n{CLOSE}\nor\n{result}\nb\n{CLOSE}\n"

    found = [(message.type, message.body) for message in read_messages(text).messages]

    assert found == [("status", "half"), ("result", "a"), ("result", "b")]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("<PLAN>\nx\n</PLAN>", "x"),
        ("\n<PLAN>\n\nx\n</PLAN>\n", "\nx"),
        ("<PLAN>x</PLAN>", "x"),
        ("<PLAN></PLAN>", ""),
        ("", ""),
        ("x", "x"),
        ("<PLAN>\nx", "<PLAN>\nx"),
        ("first\n<PLAN>\nx\n</PLAN>", "first\n<PLAN>\nx\n</PLAN>"),
        ("<PLAN>a</PLAN>\n<PLAN>b</PLAN>", "<PLAN>a</PLAN>\n<PLAN>b</PLAN>"),
        ("<RESULT>\nx\n</RESULT>", "<RESULT>\nx\n</RESULT>"),
    ],
)
def test_the_tags_of_its_section_are_no_part_of_a_body_that_they_hold_whole(
    written: str, read: str
) -> None:
    assert bodies(f"{OPEN}\n{written}\n{CLOSE}") == [read]


@pytest.mark.parametrize(
    "header",
    [
        opening(note='x}]] [[y]] {"a":[[1]]}'),
        opening(note="first\nsecond"),
        opening().replace(", ", ",\n").replace(": ", ":\n"),
        opening().replace('"T-1"', '"T-\n   1"'),
        opening(note="x]]\ny").replace("\\n", "\n"),
        opening().replace("MSG {", "MSG\n{"),
        opening().replace("}]]", "}]\n]"),
        opening().replace("MSG {", "MSG{"),
        opening(more={"deep": [1, {"a": None}]}),
    ],
)
def test_metadata_may_be_wrapped_and_hold_brackets_and_breaks(header: str) -> None:
    (message,) = read_messages(f"{header}\nbody\n{CLOSE}").messages

    assert (message.to, message.type, message.id, message.body) == (
        "EXECUTER",
        "plan",
        "T-1",
        "body",
    )


@pytest.mark.parametrize(
    ("header", "why"),
    [
        ("[[POLI:MSG]]", "metadata cannot be read"),
        ("[[POLI:MSG to=EXECUTER]]", "metadata cannot be read"),
        ("[[POLI:MSG {to: 'EXECUTER'}]]", "metadata cannot be read"),
        ('[[POLI:MSG ["EXECUTER"]]]', "not an object"),
        ('[[POLI:MSG {"to":"EXECUTER","type":"plan"}]]', "'id'"),
        ('[[POLI:MSG {"to":"EXECUTER","type":"plan","id":7}]]', "'id'"),
        ('[[POLI:MSG {"to":"","type":"plan","id":"T-1"}]]', "'to'"),
        (opening("x" * 201), "'id'"),
        ('[[POLI:MSG {"to":"A","to":"B","type":"plan","id":"T-1"}]]', "twice"),
        ('[[POLI:MSG {"to":"A","type":"plan","id":"\\ud800"}]]', "surrogate"),
        (OPEN.removesuffix("]"), "does not end"),
        (OPEN.replace("}]]", "} x]]"), "']]'"),
        (opening(note="x" * 5000), "metadata cannot be read"),
        ("[[POLI:MSG " + '{"a":' * 2000 + "]]", "metadata cannot be read"),
    ],
)
def test_unreadable_metadata_is_reported_and_skipped(header: str, why: str) -> None:
    messages = read_messages(f"{header}\nwrong\n{CLOSE}\n{OPEN}\nright\n{CLOSE}")

    assert [message.body for message in messages.messages] == ["right"]
    (ignored,) = messages.ignored
    assert why in ignored.why
    assert header.startswith(ignored.shown.removesuffix("…"))


@pytest.mark.parametrize("half", ["[[POLI:MS", "[POLI:MSG", "[[POLI:MSGS {", "[[/POLI:MSG", "[["])
def test_half_a_tag_is_text(half: str) -> None:
    messages = read_messages(f"{half}\n{OPEN}\n{half}\n{CLOSE}\n{half}")

    assert [message.body for message in messages.messages] == [half]
    assert messages.ignored == ()


def test_a_block_that_was_cut_off_is_not_glued_to_the_next() -> None:
    messages = read_messages(f"{opening('OLD-1')}\n<PLAN>\ncut off here\n\n{OPEN}\nwhole\n{CLOSE}")

    assert [(message.id, message.body) for message in messages.messages] == [("T-1", "whole")]
    assert [item.why for item in messages.ignored] == ["another block begins before it ends"]


def test_metadata_over_more_lines_than_any_terminal_makes_of_it_is_not_waited_for() -> None:
    many = opening(note=[1] * 30).replace(", ", ",\n")

    assert bodies(f"{many}\nx\n{CLOSE}") == []


def test_nor_to_one_whose_metadata_cannot_be_read() -> None:
    assert bodies(f"{OPEN}\ncut off\n[[POLI:MSG {{to}}]]\nother\n{CLOSE}") == []


def test_unterminated_block_is_reported_when_the_text_ends() -> None:
    assert faults(f"{OPEN}\nand then") == ["the text ends before it does"]
    assert faults('[[POLI:MSG {"to":') == ["its opening tag does not end"]


def test_a_closing_tag_counts_only_where_it_is_alone_on_its_line() -> None:
    body = f"End each with {CLOSE} on its own line.\n{CLOSE} is the end.\n- `{CLOSE}`"

    assert bodies(f"{OPEN}\n{body}\n  {CLOSE}  \n{CLOSE}\n") == [body]


def test_an_opening_tag_counts_only_where_it_begins_its_line() -> None:
    assert bodies(f"Say {OPEN}\nx\n{CLOSE}") == []
    assert bodies(f"{OPEN}\nSay {opening('T-2')} first.\n[[POLI:MSG is a tag\n{CLOSE}") == [
        f"Say {opening('T-2')} first.\n[[POLI:MSG is a tag"
    ]


def test_a_body_may_begin_behind_its_opening_tag() -> None:
    assert bodies(f"{OPEN} one\ntwo\n{CLOSE}") == ["one\ntwo"]
    assert bodies(f"{OPEN}{'x' * 9000} \n{CLOSE}") == ["x" * 9000 + " "]


def test_a_fenced_block_is_a_block() -> None:
    assert bodies(f"```text\n{OPEN}\n```sh\nls\n```\n{CLOSE}\n```\n") == ["```sh\nls\n```"]


@pytest.mark.parametrize("fence", ["```", "~~~", "````text"])
def test_a_block_quoted_in_code_of_a_block_is_read_before_the_one_that_quotes_it(
    fence: str,
) -> None:
    quoted = f"{fence}\n{opening('OLD-7')}\nold\n{CLOSE}\n{fence.removesuffix('text')}"

    messages = read_messages(f"{OPEN}\nAs before:\n{quoted}\nGo on.\n{CLOSE}")

    assert [(message.id, message.body) for message in messages.messages] == [
        ("OLD-7", "old"),
        ("T-1", f"As before:\n{quoted}\nGo on."),
    ]


def test_a_quoted_tag_without_an_end_does_not_end_the_block_that_quotes_it() -> None:
    text = f"{OPEN}\n```\n{opening('OLD-7')}\n…\n```\nGo on.\n{CLOSE}"

    assert bodies(text) == [f"```\n{opening('OLD-7')}\n…\n```\nGo on."]
    assert faults(text) == ["the code block around it ends before it does"]


def test_a_closing_tag_in_code_ends_a_block_only_when_no_other_does() -> None:
    assert bodies(f"{OPEN}\n```\n{CLOSE}\n```\nstop\n{CLOSE}") == [f"```\n{CLOSE}\n```\nstop"]
    inner = f"```\n```text\n{CLOSE}\n```\nstop"
    assert bodies(f"{OPEN}\n{inner}\n{CLOSE}") == [inner]
    assert bodies(f"{OPEN}\n```\nls\n{CLOSE}\nI forgot the fence.") == ["```\nls"]
    assert bodies(f"{OPEN}\n```\nls\n{CLOSE}\n{OPEN}\nx\n{CLOSE}") == ["```\nls", "x"]


def test_text_behind_a_quotation_mark_is_no_block() -> None:
    quoted = "\n".join(f"> {line}" for line in (OPEN, "x", CLOSE))

    assert bodies(quoted) == []
    assert bodies(f"{OPEN}\n{quoted}\n{CLOSE}") == [quoted]


@pytest.mark.parametrize("lead", ["  ", "\t", "⏺ ", "● ", "✦ ", "• ", "│ ", "  ⏺ "])
def test_indents_and_bullets_before_the_tag_are_taken_off_the_body(lead: str) -> None:
    rest = " " * len(lead)
    text = f"{lead}{OPEN}\n{rest}<PLAN>\n{rest}for:\n{rest}    x\n\n{rest}</PLAN>\n{rest}{CLOSE}"

    (message,) = read_messages(text).messages

    assert (message.body, message.mended) == ("for:\n    x\n", True)


def test_a_frame_is_taken_off() -> None:
    inner = [OPEN, "<PLAN>", "a | b", "", "  | c", "</PLAN>", CLOSE]
    rows = [f"│ {line:<70} │" for line in inner]
    frame = "\n".join(["╭" + "─" * 72 + "╮", *rows, "╰" + "─" * 72 + "╯"])

    assert bodies(frame) == ["a | b\n\n  | c"]


def test_colours_and_carriage_returns_are_taken_off() -> None:
    coloured = f"\x1b[36m{OPEN}\x1b[0m\r\n\x1b[1mx\x1b[0m\r\n\x1b]8;;y\x07{CLOSE}\r\n"

    (message,) = read_messages(coloured).messages

    assert (message.body, message.mended) == ("x", True)


def test_a_carriage_return_of_the_body_alone_stays() -> None:
    assert bodies(f"{OPEN}\na\r\nb\n{CLOSE}") == ["a\r\nb"]


def test_half_a_character_is_replaced_so_that_the_message_can_be_kept() -> None:
    assert bodies(f"{OPEN}\nx\ud800\n{CLOSE}") == ["x?"]


def test_what_is_kept_is_bounded_and_it_is_the_last() -> None:
    many = "".join(f"{opening(f'T-{n}')}\n{CLOSE}\n[[POLI:MSG]]\n" for n in range(1200))

    messages = read_messages(many)

    assert (len(messages.messages), len(messages.ignored)) == (MAX_MESSAGES, MAX_IGNORED)
    assert messages.messages[-1].id == "T-1199"


def test_overlong_block_or_line_is_reported_and_the_next_is_read() -> None:
    line = "x" * (MAX_BODY + 1)
    lines = ("x" * 99 + "\n") * (MAX_BODY // 100 + 1)
    after = f"{CLOSE}\n{OPEN}\nx\n{CLOSE}\n"

    assert bodies(f"{OPEN}\n{line}\n{after}{OPEN}\n{lines}{after}") == ["x", "x"]
    assert faults(f"{OPEN}\n{line}\n{after}{OPEN}\n{lines}{after}") == [
        "a line of it is too long",
        "it is too long",
    ]


def test_a_quoted_block_outlives_the_one_that_was_too_long() -> None:
    outer = f"{OPEN}\n" + ("x" * 99 + "\n") * (MAX_BODY // 100 - 10) + "```\n"
    inner = opening("T-2") + "\n" + "line\n" * 300 + CLOSE + "\n"

    assert bodies(outer + inner) == ["line\n" * 299 + "line"]


_HOSTILE = {
    "opening tags": OPEN + "\n",
    "half headers": '[[POLI:MSG {"a":"\n',
    "deep headers": "[[POLI:MSG " + '{"a":[' * 90 + "]\n",
    "headers over many lines": '[[POLI:MSG {"a":"\n' + "x]]\n" * 19,
    "closing tags": CLOSE + "\n",
    "whole blocks": f"{OPEN}\nx\n{CLOSE}\n",
    "quotations": f"{OPEN}\n```\n",
    "brackets": "[[",
    "blanks": " \t",
    "borders": "│ ",
    "half escapes": "\x1b[",
    "rows": "word " * 15 + "\n",
    "returns": "\r\n",
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("unit", _HOSTILE.values(), ids=_HOSTILE.keys())
def test_reading_takes_time_by_the_length_of_the_text(unit: str) -> None:
    def read(size: int) -> None:
        read_messages(f"{OPEN}\n{unit * (size // len(unit))}\n{CLOSE}\n", columns=80)

    assert_linear_cost(read, 320_000)


def test_very_many_opening_tags_hold_no_message() -> None:
    messages = read_messages(f"{OPEN}\n" * 20_000)

    assert messages.messages == ()
    assert len(messages.ignored) == MAX_IGNORED
