"""Tagged blocks, beyond what the corpus holds."""

from __future__ import annotations

import pytest

from podium.agents.contract import NotAnAnswer, read_block
from podium.agents.contract.block import LOOKED_AT, MAX_BLOCKS
from tests.linear_cost import assert_linear_cost
from tests.soaking import in_soak

OPEN = '[[POLI:MSG {"to": "EXECUTER", "id": "n1"}]]'
CLOSE = "[[/POLI:MSG]]"


def refusal(text: str, tag: str = "POLI:MSG", nonce: str | None = None) -> NotAnAnswer:
    with pytest.raises(NotAnAnswer) as caught:
        read_block(text, tag, nonce=nonce)
    return caught.value


def test_a_refusal_names_the_tag_and_what_to_send() -> None:
    assert "[[POLI:MSG]]" in str(refusal("words"))
    assert "<PLAN>" in str(refusal("<PLAN>\nhalf", "<PLAN>"))


def test_tag_is_matched_literally_and_not_as_a_pattern() -> None:
    assert read_block("[[A.B]]\nx\n[[/A.B]]", "A.B").body == "x"
    assert refusal("[[AxB]]\nx\n[[/AxB]]", "A.B").problem == "missing"


@pytest.mark.parametrize(
    ("text", "tag", "problem"),
    [
        (f"{OPEN}\nouter\n{OPEN}\ninner\n{CLOSE}\nrest\n{CLOSE}", "POLI:MSG", "ambiguous"),
        (f"{OPEN}\nWrite:\n    {CLOSE}\nand stop\n{CLOSE}", "POLI:MSG", "ambiguous"),
        (f"{OPEN}\nWrite:\n```\n{CLOSE}\n```\nand stop\n{CLOSE}", "POLI:MSG", "cut off"),
        (f"{OPEN}\nWrite:\n```\n{CLOSE}\n```\nand st", "POLI:MSG", "cut off"),
        ("<PLAN>\n1. add the missing </PLAN>\n2. test\n</PLAN>", "<PLAN>", "ambiguous"),
        ("<PLAN>\n1. add the missing </PLAN>\n2. te", "<PLAN>", "cut off"),
        (f"<think>\n{OPEN}\ndraft\n{CLOSE}\n</think>\n", "POLI:MSG", "missing"),
        (f"<think>\n{OPEN}\ndraft\n{CLOSE}\nhmm", "POLI:MSG", "missing"),
        (
            '[[POLI:MSG {"subject": "fix the\n  parser"}]]\nx\n[[/POLI:MSG]]',
            "POLI:MSG",
            "malformed",
        ),
        ("<PLAN id='a' id='b'>\nx\n</PLAN>", "<PLAN>", "malformed"),
    ],
)
def test_half_a_body_a_draft_or_a_guess_is_never_given(text: str, tag: str, problem: str) -> None:
    assert refusal(text, tag).problem == problem


@pytest.mark.parametrize(
    ("opening", "header"),
    [
        ("<PLAN id='n1'>", {"id": "n1"}),
        ('<PLAN v="1" id="n1">', {"v": "1", "id": "n1"}),
        ('\u200b<PLAN id="n1">', {"id": "n1"}),
    ],
)
def test_an_angled_tag_may_have_other_quotes_other_attributes_and_invisible_marks(
    opening: str, header: dict[str, str]
) -> None:
    block = read_block(f"{opening}\n  x\n</PLAN>", "<PLAN>", nonce="n1")
    assert (block.header, block.body) == (header, "  x")


def test_a_table_in_a_body_behind_a_bar_is_not_taken_for_a_frame() -> None:
    table = "| a | b |\n| 1 | 2 |"
    assert read_block(f"| {OPEN}\n{table}\n{CLOSE}", "POLI:MSG").body == table


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "text",
    [
        f"| {OPEN}\n|{' ' * 900_000}x\n{CLOSE}",
        f"| {OPEN} |\n|{' ' * 900_000}x\n{CLOSE}",
        ('[[POLI:MSG {"id": "x' + " " * 3900 + '"}]]\nb\n[[/POLI:MSG]]\n') * 245
        + f"{OPEN}\nb\n{CLOSE}",
        (CLOSE + " " * 2200 + "x\n") * 450 + f"{OPEN}\nb\n{CLOSE}",
        (f"{OPEN}\n" + " |" * 2000 + f"\n{CLOSE}\n") * 200,
    ],
)
def test_floods_of_blanks_and_borders_are_read_in_bounded_time(text: str) -> None:
    assert read_block(text, "POLI:MSG").header["id"] == "n1"


def test_a_block_longer_than_what_is_looked_at_is_not_found_by_halves() -> None:
    assert refusal(f"{OPEN}\n{'x' * LOOKED_AT}\n{CLOSE}").problem == "missing"


def test_more_blocks_than_are_read_do_not_hide_the_last() -> None:
    many = "".join(f'[[POLI:MSG {{"id": "o{n}"}}]]\n{n}\n{CLOSE}\n' for n in range(MAX_BLOCKS + 50))
    assert read_block(f"{many}{OPEN}\nlast\n{CLOSE}", "POLI:MSG", nonce="n1").body == "last"


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "piece",
    ["[[POLI:MSG {", '[[POLI:MSG {"id": "', f"{CLOSE}\n", f'[[POLI:MSG {{"id": "n0"}}]]\n{CLOSE}\n', f"{OPEN}\n", "│ ", " ", "\n", "[", "<PLAN ", "⏺ [[POLI:MSG\n", f"[[POLI:MSG {{\n{CLOSE}\n"],
)  # fmt: skip
@pytest.mark.parametrize("size", [3 * LOOKED_AT // 2, in_soak(20 * LOOKED_AT)])
def test_floods_of_almost_tags_are_read_in_bounded_time(piece: str, size: int) -> None:
    flood = piece * (size // len(piece))
    block = read_block(f"{flood}\n{OPEN}\nbody\n{CLOSE}", "POLI:MSG", nonce="n1")
    assert block.body == "body"
    assert_linear_cost(lambda size: refusal(piece * (size // len(piece)), "<PLAN>"), size)
