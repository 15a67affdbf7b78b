"""Properties of edits for any text: a single exact match is edited as `str.replace` does; all else stays."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from podium.tools.edits import EditRefused, TextEdit, apply_edits, decoded

CHARACTERS = st.text(alphabet='ab \t\n.{é“"', max_size=60)
ENDS = st.sampled_from(["\n", "\r\n", "\r"])
WORDS = st.lists(st.sampled_from(["alpha", "beta = 1", "  gamma(x)", "\tdelta", "", "}", "..."]))


@given(before=CHARACTERS, find=CHARACTERS.filter(bool), after=CHARACTERS, replace=CHARACTERS)
def test_text_occurring_once_is_replaced_as_str_replace_does(
    before: str, find: str, after: str, replace: str
) -> None:
    text = before + find + after
    assume(find != replace and text.find(find) == text.rfind(find))
    # Further lines of what replaces the first word of an indented line are indented with it.
    indentation = before.rpartition("\n")[2]
    assume("\n" in find or "\n" not in replace or not indentation or indentation.strip())
    assert apply_edits(text, [TextEdit(find, replace)]).text == text.replace(find, replace)


@given(words=WORDS, end=ENDS, data=st.data())
def test_lines_of_any_kind_of_end_are_replaced_and_keep_it(
    words: list[str], end: str, data: st.DataObject
) -> None:
    lines = [f"#{number}: {word}" for number, word in enumerate(words)]
    assume(len(lines) > 1)
    first = data.draw(st.integers(0, len(lines) - 1))
    last = data.draw(st.integers(first + 1, len(lines)))
    new = data.draw(st.lists(st.sampled_from(["new", "other"]), min_size=1, max_size=4))
    edited = apply_edits(end.join(lines), [TextEdit("\n".join(lines[first:last]), "\n".join(new))])
    assert edited.text == end.join([*lines[:first], *new, *lines[last:]])


def drifted(line: str, data: st.DataObject) -> str:
    blanks = data.draw(st.sampled_from(["", " ", "\t "]))
    return line.replace(" ", data.draw(st.sampled_from([" ", "  ", "\u00a0"])), 1) + blanks


@given(data=st.data())
def test_what_lies_outside_the_place_stays_untouched_by_every_tolerance(
    data: st.DataObject,
) -> None:
    ends = data.draw(st.lists(st.sampled_from(["\n", "\r\n"]), min_size=9, max_size=9))
    depth = data.draw(st.sampled_from(["", "    ", "\t"]))
    lines = [f"{depth}call number{n}(first, second)  # {'“x”' * (n % 2)}" for n in range(9)]
    text = "".join(line + end for line, end in zip(lines, ends, strict=True))
    shift = data.draw(st.sampled_from(["", "    ", "  "]))
    snippet = [shift + drifted(line.strip(), data) for line in lines[3:6]]
    wanted = [snippet[0], snippet[1].replace("number4", "number44"), snippet[2]]
    try:
        after = apply_edits(text, [TextEdit("\n".join(snippet), "\n".join(wanted))]).text
    except EditRefused:
        return
    right = [*lines[:4], lines[4].replace("number4", "number44"), *lines[5:]]
    assert after == "".join(line + end for line, end in zip(right, ends, strict=True))


@given(st.binary(max_size=80))
def test_any_bytes_are_refused_or_come_back_as_they_were(content: bytes) -> None:
    try:
        coded = decoded(content)
    except EditRefused:
        return
    assert coded.encoded(coded.text) == content


@given(text=CHARACTERS, find=CHARACTERS, replace=CHARACTERS, line=st.integers(1, 9))
def test_a_hint_never_makes_a_match(text: str, find: str, replace: str, line: int) -> None:
    hinted, plain = TextEdit(find, replace, line), TextEdit(find, replace)
    try:
        unhinted = apply_edits(text, [plain]).text
    except EditRefused as refused:
        if str(refused.reason) != "ambiguous":
            assert _refused(text, hinted)
        return
    assert apply_edits(text, [hinted]).text == unhinted


def _refused(text: str, edit: TextEdit) -> bool:
    try:
        apply_edits(text, [edit])
    except EditRefused:
        return True
    return False
