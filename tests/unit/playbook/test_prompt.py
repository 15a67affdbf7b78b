"""The prompt: the same bytes for the same values, and no value can become anything but data."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from podium.core.errors import BadInput
from podium.core.model import Json
from podium.jobs.playbook import build_prompt, settle
from podium.jobs.playbook.loader import load_playbook, load_profile
from podium.jobs.playbook.models import (
    InputSpec,
    Playbook,
    PlaybookHead,
    PlaybookStep,
    PluginProfile,
)
from podium.jobs.playbook.prompt import MAX_PROMPT
from tests.unit.playbook.files import write

GOLDEN = Path(__file__).parent / "golden"
FACTS = {"system": "Linux", "branch": "main"}
PROFILE = PluginProfile(name="p", kind="k", language="l")

SPOTS = """\
{{ a }}
- {{ a }}
> {{ a }}

before {{ a }} after `{{ a }}` and ``x {{ a }}`` [{{ a }}](x)
1. {{ a }}{{ a }}

```sh
{{ a }}
echo {{ a }} ~{{ a }}
```

~~~
~{{ a }}
~~~

- ```
  {{ a }}
  ```
> ~~~
> {{ a }}
> ~~~
"""
"""Every kind of place a value can be put in."""


def book(text: str = SPOTS, title: str = "Step", **inputs: InputSpec) -> Playbook:
    head = PlaybookHead(name="n", inputs=inputs or {"a": InputSpec()})
    return Playbook(head=head, steps=(PlaybookStep(title=title, text=text),))


def outline(text: str) -> list[str]:
    """The headings, as a Markdown parser of others sees them."""
    tokens = MarkdownIt().parse(text)
    return [
        f"{token.tag} {tokens[at + 1].content}"
        for at, token in enumerate(tokens)
        if token.type == "heading_open"
    ]


def kinds(text: str) -> list[str]:
    """Return the kind of each part, down to the code spans within a line."""
    tokens = MarkdownIt().parse(text)
    return [part.type for token in tokens for part in (token, *(token.children or ()))]


def test_the_prompt_is_the_golden_one_to_the_byte(tmp_path: Path) -> None:
    playbook = load_playbook(write(tmp_path))
    profile = load_profile(tmp_path)
    inputs = {"version": "6.6", "notes": "Mind the gap.\n# Not a section\n```\nnor this\n```"}
    prompt = build_prompt(profile, playbook, inputs, FACTS)
    assert prompt.text == (GOLDEN / "bump.prompt.md").read_text()
    assert [section.name for section in prompt.sections] == [
        "task",
        "plugin",
        "surroundings",
        "inputs",
        "playbook",
        "success",
        "rules",
        "answer",
    ]


def test_the_order_in_which_inputs_and_facts_are_handed_over_changes_nothing(
    tmp_path: Path,
) -> None:
    playbook, profile = load_playbook(write(tmp_path)), load_profile(tmp_path)
    inputs = [("version", "6.6"), ("notes", "n"), ("strict", "false")]
    facts = [("b", 1), ("a", [2, 3]), ("c", {"d": None, "e": "f"})]
    first = build_prompt(profile, playbook, dict(inputs), dict(facts)).text
    for seed in range(10):
        random.Random(seed).shuffle(inputs)
        random.Random(seed).shuffle(facts)
        assert build_prompt(profile, playbook, dict(inputs), dict(facts)).text == first


def test_the_estimate_is_a_quarter_of_the_characters_and_the_sections_are_all_of_it() -> None:
    prompt = build_prompt(PROFILE, book("x" * 4000, a=InputSpec(default="v")))
    assert "\n".join(section.text for section in prompt.sections) == prompt.text
    assert abs(prompt.estimated_tokens - len(prompt.text) / 4) <= len(prompt.sections)


NASTY = st.text(
    alphabet=st.sampled_from("`~#->*=[](){}<!|_\\ \t\nabc1.\u202e\u2028\x1b\r\x85\ud800é"),
    max_size=60,
)


@given(NASTY)
def test_no_value_opens_a_section_or_a_block_wherever_it_is_put(value: str) -> None:
    plain = build_prompt(PROFILE, book(), {"a": "plain"}).text
    try:
        text = build_prompt(PROFILE, book(), {"a": value}).text
    except BadInput:
        return
    if value:
        assert outline(text) == outline(plain)
        assert kinds(text) == kinds(plain)
    assert not any(item in text for item in "\u202e\u2028\x1b\r\x85\ud800")


@given(NASTY)
def test_no_text_of_many_lines_opens_one_either(value: str) -> None:
    playbook = book("See {{ a }}.", a=InputSpec(type="text"))
    plain = build_prompt(PROFILE, playbook, {"a": "plain"}).text
    assert kinds(build_prompt(PROFILE, playbook, {"a": value}).text) == kinds(plain)


@given(NASTY.filter(str.strip))
def test_no_word_of_the_profile_or_of_the_facts_opens_one(words: str) -> None:
    profile = PROFILE.model_copy(update={"conventions": (words,), "forbidden_paths": (words,)})
    plain = PROFILE.model_copy(update={"conventions": ("x",), "forbidden_paths": ("x",)})
    playbook = book("x", a=InputSpec(default="v"))
    text = build_prompt(profile, playbook, facts={words: words}).text
    assert kinds(text) == kinds(build_prompt(plain, playbook, facts={"x": "x"}).text)


def test_a_value_in_prose_is_code_and_in_code_is_itself() -> None:
    text = build_prompt(PROFILE, book("a {{ a }} b `c {{ a }}`"), {"a": "v"}).text
    assert "a `v` b `c v`" in text
    text = build_prompt(PROFILE, book("a {{a}} b"), {"a": "x``y"}).text
    assert "a ```x``y``` b" in text


def test_a_value_that_would_end_its_code_is_refused() -> None:
    with pytest.raises(BadInput, match="is used inside code"):
        build_prompt(PROFILE, book("`{{ a }}`"), {"a": "x`y"})
    with pytest.raises(BadInput, match="would end the code block"):
        build_prompt(PROFILE, book("~~~\n~{{ a }}\n~~~"), {"a": "~~"})


def test_adjacent_values_do_not_break_one_another_out_of_their_code() -> None:
    playbook = book("{{ a }}{{ b }}`c`{{ b }}", a=InputSpec(), b=InputSpec())
    text = build_prompt(PROFILE, playbook, {"a": "x", "b": "y`z"}).text
    assert "`x` ``y`z`` `c` ``y`z``" in text


@pytest.mark.parametrize(
    "text",
    ["it`s {{ a }}", "`open\n{{ a }} `", "\\`{{ a }}\\`", "{{ a }} ``x`", "> it`s\n> {{ a }}"],
)
def test_a_backtick_without_a_partner_beside_an_input_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="plain pairs"):
        build_prompt(PROFILE, book(text), {"a": "v"})


def test_a_backtick_without_a_partner_elsewhere_is_nobodys_business() -> None:
    text = build_prompt(PROFILE, book("it`s\n\n{{ a }}\n\n```\n`\n```"), {"a": "v"}).text
    assert "it`s\n\n`v`" in text


def test_code_in_lists_and_quotes_is_code() -> None:
    text = "- ```sh\n  echo {{ a }}\n  ```\n\n> ```\n> {{ a }}\n> ```\n\n1. ~~~\n   {{ a }}\n   ~~~"
    filled = build_prompt(PROFILE, book(text), {"a": "v"}).text
    assert text.replace("{{ a }}", "v") in filled


def test_a_value_is_never_looked_at_for_names() -> None:
    playbook = book("{{ a }} {{ b }}", a=InputSpec(), b=InputSpec())
    text = build_prompt(PROFILE, playbook, {"a": "{{ b }}", "b": "{{ a }}"}).text
    assert "`{{ b }}` `{{ a }}`" in text


def test_braces_with_a_mark_before_them_stay_braces() -> None:
    text = build_prompt(PROFILE, book(r"\{{ matrix.php }} ${{a}}"), {"a": "v"}).text
    assert "{{ matrix.php }} $`v`" in text


def test_an_unknown_name_is_refused_also_in_a_playbook_made_by_a_program() -> None:
    for bad in ("{{ b }}", "{{ a.b }}", "{{", "{{ a | e }}", "{{ __class__ }}"):
        with pytest.raises(BadInput, match="input"):
            build_prompt(PROFILE, book(bad), {"a": "v"})


@pytest.mark.parametrize(
    ("spec", "value", "text"),
    [
        (InputSpec(type="integer"), "07", "7"),
        (InputSpec(type="integer"), -3, "-3"),
        (InputSpec(type="number"), "2.50", "2.5"),
        (InputSpec(type="number"), 2, "2"),
        (InputSpec(type="boolean"), "TRUE", "true"),
        (InputSpec(type="boolean"), False, "false"),
        (InputSpec(type="path"), "src/a b.php", "src/a b.php"),
        (InputSpec(type="text"), "a\nb", "a\nb"),
        (InputSpec(choices=("major", "minor")), "minor", "minor"),
        (InputSpec(required=False), None, ""),
    ],
)
def test_a_value_of_its_type_is_taken(spec: InputSpec, value: Json, text: str) -> None:
    assert settle({"a": spec}, {} if value is None else {"a": value}).values == {"a": text}


@pytest.mark.parametrize(
    ("spec", "value"),
    [
        (InputSpec(), "a\nb"),
        (InputSpec(), "a\u2028b"),
        (InputSpec(), "a\0"),
        (InputSpec(), 3.1),
        pytest.param(InputSpec(), "x" * 1_001, id="long line"),
        (InputSpec(), ["x"]),
        pytest.param(InputSpec(type="text"), "x" * 100_001, id="long text"),
        (InputSpec(type="integer"), "3.0"),
        (InputSpec(type="integer"), True),
        pytest.param(InputSpec(type="integer"), "9" * 5_000, id="long"),
        (InputSpec(type="integer"), 10**30),
        (InputSpec(type="integer"), "٣"),
        (InputSpec(type="number"), "nan"),
        (InputSpec(type="number"), "1e999"),
        (InputSpec(type="number"), float("inf")),
        pytest.param(InputSpec(type="number"), 10**400, id="huge"),
        (InputSpec(type="boolean"), "yes"),
        (InputSpec(type="boolean"), 1),
        (InputSpec(type="path"), "../etc"),
        (InputSpec(type="path"), "/etc"),
        (InputSpec(type="path"), "a/../../b"),
        (InputSpec(choices=("major",)), "patch"),
    ],
)
def test_a_value_of_another_type_is_refused(spec: InputSpec, value: Json) -> None:
    with pytest.raises(BadInput, match=r"^input 'a' "):
        settle({"a": spec}, {"a": value})


def test_all_faults_of_inputs_are_reported_at_once() -> None:
    specs = {"a": InputSpec(), "n": InputSpec(type="integer")}
    with pytest.raises(BadInput) as refused:
        settle(specs, {"n": "x", "z": 1})
    assert str(refused.value).splitlines() == [
        "there is no input 'z'; inputs: a, n",
        "input 'n' must be a whole number",
        "input 'a' is required",
    ]


def test_a_sample_shows_what_is_not_given_yet_and_says_so() -> None:
    prompt = build_prompt(PROFILE, book(), sample=True)
    assert prompt.missing == ("a",)
    assert "<a: not given yet>" in prompt.text
    with pytest.raises(BadInput, match="is required"):
        build_prompt(PROFILE, book())


def test_a_playbook_cannot_ask_for_more_than_the_profile_gives() -> None:
    profile = PROFILE.model_copy(update={"allowed_tools": ("read_file",)})
    head = PlaybookHead(name="n", allowed_tools=("read_file", "run_command"), success=("@test",))
    with pytest.raises(BadInput) as refused:
        build_prompt(profile, Playbook(head=head, steps=(PlaybookStep(title="s"),)))
    assert "tool 'run_command'; it allows: read_file" in str(refused.value)
    assert "no command '@test'; it has: none" in str(refused.value)


def test_a_prompt_without_end_is_refused() -> None:
    with pytest.raises(BadInput, match="more than 1,000,000"):
        build_prompt(PROFILE, book("x" * MAX_PROMPT), {"a": "v"})
    with pytest.raises(BadInput, match="facts are too many"):
        build_prompt(PROFILE, book(), {"a": "v"}, {str(n): n for n in range(1_000)})
