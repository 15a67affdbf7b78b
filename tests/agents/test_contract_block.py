"""Tagged blocks, beyond what the corpus holds."""

from __future__ import annotations

import pytest

from podium.agents.contract import NotAnAnswer, read_block
from podium.agents.contract.block import LOOKED_AT, MOST_BLOCKS

OPEN = '[[POLI:MSG {"to": "EXECUTER", "id": "n1"}]]'
CLOSE = "[[/POLI:MSG]]"


def refusal(text: str, tag: str = "POLI:MSG", nonce: str | None = None) -> NotAnAnswer:
    with pytest.raises(NotAnAnswer) as caught:
        read_block(text, tag, nonce=nonce)
    return caught.value


def test_a_refusal_names_the_tag_and_what_to_send() -> None:
    assert "[[POLI:MSG]]" in str(refusal("words"))
    assert "<PLAN>" in str(refusal("<PLAN>\nhalf", "<PLAN>"))


def test_a_tag_is_taken_by_the_letter_and_not_as_a_pattern() -> None:
    assert read_block("[[A.B]]\nx\n[[/A.B]]", "A.B").body == "x"
    assert refusal("[[AxB]]\nx\n[[/AxB]]", "A.B").problem == "missing"


def test_a_block_inside_a_block_is_the_one_that_counts_and_the_outer_is_left_open() -> None:
    block = read_block(f"{OPEN}\nouter\n{OPEN}\ninner\n{CLOSE}\nrest\n{CLOSE}", "POLI:MSG")
    assert block.body == "inner"


def test_a_block_longer_than_what_is_looked_at_is_not_found_by_halves() -> None:
    assert refusal(f"{OPEN}\n{'x' * LOOKED_AT}\n{CLOSE}").problem == "missing"


def test_more_blocks_than_are_read_do_not_hide_the_last() -> None:
    many = "".join(
        f'[[POLI:MSG {{"id": "o{n}"}}]]\n{n}\n{CLOSE}\n' for n in range(MOST_BLOCKS + 50)
    )
    assert read_block(f"{many}{OPEN}\nlast\n{CLOSE}", "POLI:MSG", nonce="n1").body == "last"


@pytest.mark.parametrize(
    "piece",
    ["[[POLI:MSG {", '[[POLI:MSG {"id": "', f"{CLOSE}\n", f'[[POLI:MSG {{"id": "n0"}}]]\n{CLOSE}\n', f"{OPEN}\n", "│ ", " ", "\n", "[", "<PLAN ", "⏺ [[POLI:MSG\n", f"[[POLI:MSG {{\n{CLOSE}\n"],
)  # fmt: skip
def test_floods_of_almost_tags_are_read_in_bounded_time(piece: str) -> None:
    flood = piece * (20_000_000 // len(piece))
    block = read_block(f"{flood}\n{OPEN}\nbody\n{CLOSE}", "POLI:MSG", nonce="n1")
    assert block.body == "body"
    refusal(flood, "<PLAN>")
