"""A text that comes in pieces is read as if it had come at once, wherever it is cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from podium.agents.contract import MessageStream, read_messages
from podium.agents.contract.messages import joined
from podium.core.turns import MessageBlock, block_of

CLOSE = "[[/POLI:MSG]]"
OPEN = '[[POLI:MSG {"to":"EXECUTER","type":"plan","id":"T-1"}]]'

pieces = st.sampled_from(
    (
        OPEN, OPEN + "\n", f"\n{CLOSE}\n", CLOSE, "[[POLI:MSG", "[[POLI:MSG {", '"id":"', "T-1", "]]", "]", "}", "\n",
        "\n\n", "\r\n", " ", "\t", "⏺ ", "│ ", " │\n", "> ", "```\n", "\n```", "~~~\n", "<PLAN>", "</PLAN>", "\x1b[1m", "\x1b",
        "[31m", "\ufeff", "\ud800", "words of a line", "漢字", "\\", '"', ",", "\x00", "\u2028", "\x85", "\x0c",
    )
)  # fmt: skip
texts = st.lists(pieces | st.text(max_size=6), max_size=24).map("".join)
columns = st.sampled_from((0, 20, 80))


def streamed(chunks: list[str], columns: int) -> object:
    stream = MessageStream(columns=columns)
    return joined(*[stream.feed(chunk) for chunk in chunks], stream.end())


@given(texts, st.lists(st.integers(0, 400), max_size=12), columns)
def test_where_a_text_is_cut_makes_no_difference(text: str, cuts: list[int], columns: int) -> None:
    places = sorted({0, len(text), *(min(cut, len(text)) for cut in cuts)})
    chunks = [text[here:there] for here, there in zip(places, [*places[1:], None], strict=True)]

    assert streamed(chunks, columns) == read_messages(text, columns=columns)


@given(texts, columns)
def test_nor_does_it_when_characters_come_one_by_one(text: str, columns: int) -> None:
    assert streamed(list(text), columns) == read_messages(text, columns=columns)


def test_message_is_reported_once_as_soon_as_its_last_line_has_ended() -> None:
    stream = MessageStream()

    assert stream.feed(f"{OPEN}\nbody\n{CLOSE}").messages == ()
    assert [message.body for message in stream.feed("\n").messages] == ["body"]
    assert stream.feed("more\n").messages == ()
    assert stream.end().messages == ()


def test_a_closing_tag_that_a_sentence_goes_on_from_ended_nothing() -> None:
    stream = MessageStream()
    stream.feed(f"{OPEN}\nbody\n{CLOSE}")

    assert stream.feed(" is how it ends\n").messages == ()
    assert [item.why for item in stream.end().ignored] == ["the text ends before it does"]


# What a terminal would not leave as it is, or what is itself a tag or a fence.
bodies = st.text(
    st.characters(exclude_characters="\x1b[]<>`~\r", exclude_categories=["Cs"]), max_size=200
)
words = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20)


@given(
    st.sampled_from(["plan", "result", "report", "status", "blocker"]), words, words, bodies, texts
)
def test_written_message_is_read_whatever_came_before_it(
    type_: str, to: str, id_: str, body: str, before: str
) -> None:
    message = MessageBlock(to=to, type=type_, id=id_, body=body)
    fences_are_closed = before.replace("```", "").replace("~~~", "")

    messages = read_messages(f"{fences_are_closed}\n{block_of(message)}")

    read = messages.messages[-1]
    assert (read.to, read.type, read.id, read.body) == (to, type_, id_, body)


@given(texts, columns)
def test_nothing_is_read_that_has_no_whole_metadata(text: str, columns: int) -> None:
    for message in read_messages(text, columns=columns).messages:
        assert message.to == "EXECUTER"
        assert message.id
