"""Secrets never reach what is written; everything else does, unchanged."""

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic_core import to_json

from podium.core.decisions import Call, CallRecord, CallStatus, Decision, Effect, Tier
from podium.core.errors import BadInput
from podium.core.events import ApprovalRequested, ToolCompleted, read_body
from podium.core.ids import mint_id
from podium.core.model import Json
from podium.store.redaction import Redactor
from tests.linear_cost import assert_linear_cost
from tests.soaking import examples

GITHUB = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z" + "Q1"

# Without digits, quotes and brackets a secret cannot come about by chance in the JSON around it.
plain_secrets = st.text(
    alphabet="abcdefghjkmnpqxyzABCDEFGHXYZ!$%&/+=?~äß€𝄞 '`", min_size=6, max_size=30
)
wild_secrets = st.text(min_size=6, max_size=30)
leaves = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20)
)


def strings_in(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from value
        for item in value.values():
            yield from strings_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings_in(item)


@st.composite
def documents_with(draw: st.DrawFn, secrets: list[str]) -> Json:
    """Nested JSON with secrets as strings, inside strings, in keys, and quoted once more."""
    tainted = st.sampled_from(secrets).flatmap(
        lambda secret: st.sampled_from(
            [
                secret,
                f"before {secret} after",
                json.dumps({secret: secret}),
                repr([secret]),
                secret * 2,
            ]
        )
    )
    return draw(
        st.recursive(
            leaves | tainted,
            lambda inner: (
                st.lists(inner, max_size=4)
                | st.dictionaries(st.text(max_size=8) | tainted, inner, max_size=4)
            ),
            max_leaves=12,
        )
    )


def redactor_for(secrets: list[str]) -> Redactor:
    """With those secrets that a redactor takes."""
    try:
        return Redactor({f"VARIABLE_{number}": secret for number, secret in enumerate(secrets)})
    except BadInput:
        assume(False)
        raise


@settings(max_examples=examples(50))
@given(st.data(), st.lists(plain_secrets, min_size=1, max_size=3))
def test_a_secret_anywhere_in_a_document_is_gone_from_its_text(
    data: st.DataObject, secrets: list[str]
) -> None:
    redactor = redactor_for(secrets)
    document = data.draw(documents_with(secrets))
    written = redactor.json_text(to_json(document).decode())
    for secret in secrets:
        assert secret.strip() not in written


@settings(max_examples=examples(50))
@given(st.data(), st.lists(wild_secrets, min_size=1, max_size=3))
def test_the_text_parses_equals_the_cleaned_value_and_holds_no_secret_in_any_string(
    data: st.DataObject, secrets: list[str]
) -> None:
    redactor = redactor_for(secrets)
    document = json.loads(to_json(data.draw(documents_with(secrets))))
    read_back = json.loads(redactor.json_text(to_json(document).decode()))
    assert read_back == redactor.value(document)
    for string in strings_in(read_back):
        for secret in secrets:
            assert secret.strip() not in string


@settings(max_examples=examples(50))
@given(st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_a_clean_document_is_returned_byte_for_byte(document: Json) -> None:
    serialised = json.dumps(document, ensure_ascii=False, indent=3)
    redactor = Redactor({"A_TOKEN": "Zk3vQ9xT7wLm2"}, [r"customer-\d+"])
    assert redactor.json_text(serialised) == serialised


def test_a_document_that_only_looks_suspicious_is_returned_byte_for_byte() -> None:
    serialised = '{ "says": "the bearer of eyJ, at http://a:b c@d" }'
    assert Redactor({}).json_text(serialised) == serialised


def test_the_marker_names_the_variable() -> None:
    redactor = Redactor({"API_KEY": "Zk3vQ9xT7w"})
    assert redactor.text("key Zk3vQ9xT7w, again Zk3vQ9xT7w") == (
        "key [redacted:API_KEY], again [redacted:API_KEY]"
    )


def test_known_values_are_named_also_where_they_are_part_of_something_else() -> None:
    redactor = Redactor.from_environment(
        {"SHOP_URL": "postgresql://shop:hunter-31@db/shop", "DEPLOY_PASSWORD": "correct-horse-77"}
    )
    assert redactor.values_in("Authorization: Bearer correct-horse-77") == ("DEPLOY_PASSWORD",)
    assert redactor.values_in("https://shop:hunter-31@elsewhere") == ("SHOP_URL:password",)
    assert redactor.values_in(f"{GITHUB} [redacted:DEPLOY_PASSWORD]") == ()


def test_a_known_token_in_a_variable_goes_by_the_variables_name() -> None:
    assert Redactor({"GH_TOKEN": GITHUB}).text(GITHUB) == "[redacted:GH_TOKEN]"
    assert Redactor({}).text(GITHUB) == "[redacted:github-token]"


def test_of_overlapping_secrets_the_longest_is_replaced_first() -> None:
    redactor = Redactor({"SHORT": "abcdefgh", "LONG": "abcdefgh-ijklmnop"})
    assert redactor.text("abcdefgh-ijklmnop abcdefgh") == "[redacted:LONG] [redacted:SHORT]"


def test_a_secret_that_a_marker_would_complete_is_hidden_too() -> None:
    redactor = Redactor({"ONE": "foobarfoo", "TWO": "]hello"})
    assert "]hello" not in redactor.text("foobarfoohello")
    redactor = Redactor({"ODD": "]@host9"})
    assert "]@host9" not in redactor.text("redis://ada:s3cr3t@host9")


def test_a_text_that_cannot_be_cleaned_is_given_up_whole() -> None:
    redactor = Redactor({"ONE": "d:ONE]x"})  # each marker completes it again
    assert redactor.text("d:ONE]x") == "[redacted:ONE]"
    assert redactor.text("d:ONE]xxxxxxxxxx") == "[redacted:text]"


@pytest.mark.parametrize(
    "written",
    [
        'p"a\\s$s\nwörd',
        json.dumps('p"a\\s$s\nwörd'),
        json.dumps('p"a\\s$s\nwörd', ensure_ascii=False),
        repr('p"a\\s$s\nwörd'),
        "p%22a%5Cs%24s%0Aw%C3%B6rd",
        "p%22a%5cs%24s%0aw%c3%b6rd",
        'export X="p\\"a\\\\s\\$s\nwörd"',
    ],
)
def test_a_secret_is_found_however_it_is_written(written: str) -> None:
    redactor = Redactor({"ODD": 'p"a\\s$s\nwörd'})
    assert "[redacted:ODD]" in redactor.text(written)
    assert "[redacted:ODD]" in redactor.json_text(to_json([written]).decode())


@pytest.mark.parametrize(
    "written",
    [
        r"wö/rd&<x>+y'z",
        r"w\u00f6/rd&<x>+y'z",
        r"w\u00F6/rd&<x>+y'z",
        r"wö\/rd&<x>+y'z",
        r"w\u00F6\/rd&<x>+y'z",
        r"wö/rd\u0026\u003cx\u003e+y'z",
        r"wö/rd\u0026\u003Cx\u003E+y'z",
        r"w\u00F6\/rd\u0026\u003Cx\u003E\u002By\u0027z",
        repr("wö/rd&<x>+y'z".encode()),
    ],
)
def test_a_secret_is_found_as_other_encoders_write_it(written: str) -> None:
    redactor = Redactor({"ODD": "wö/rd&<x>+y'z"})
    assert "[redacted:ODD]" in redactor.text(written)
    assert "[redacted:ODD]" in redactor.json_text(to_json([written]).decode())


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
@pytest.mark.parametrize(
    "secret",
    [
        "#it's a,b^c",
        "~x{y}[z]*?|&;()<>!",
        'q"u$o`t\\e',
        "two\nlines 'of' it",
        "pö x'y",
        "a=~b:~c d",
    ],
)
def test_a_secret_is_found_as_bash_quotes_it(secret: str, locale: str) -> None:
    line = ["bash", "-c", 'printf %q "$1"', "bash", secret]
    quoted = subprocess.run(
        line, env={"LC_ALL": locale}, check=True, capture_output=True, encoding="utf-8"
    ).stdout
    assert quoted != secret
    assert "[redacted:ODD]" in Redactor({"ODD": secret}).text(f"export X={quoted}")


def test_declared_secret_is_hidden_even_if_its_name_does_not_show_it() -> None:
    environ = {"LICENCE": "ordinary-name-77", "OTHER": "left-alone-88"}
    redactor = Redactor.from_environment(environ, declared=["LICENCE", "NOWHERE"])
    assert redactor.text("ordinary-name-77 left-alone-88") == "[redacted:LICENCE] left-alone-88"


def test_longest_secret_is_known_in_its_longest_spelling() -> None:
    assert Redactor({}).longest == 256
    assert Redactor({"LONG": "ö" * 300}).longest == 8 * 300


def test_a_secret_quoted_by_a_shell_is_found() -> None:
    redactor = Redactor({"ODD": "it's-a-secret"})
    assert redactor.text(r"export X='it'\''s-a-secret'") == "export X='[redacted:ODD]'"


def test_every_long_line_of_a_secret_is_hidden_on_its_own() -> None:
    redactor = Redactor({"PEM": "short\nfirst-long-line\n  second-long-line\r\nend\n"})
    assert redactor.text("2: second-long-line") == "2: [redacted:PEM]"
    assert redactor.text("1: first-long-line") == "1: [redacted:PEM]"
    assert redactor.text("a short end") == "a short end"


def test_keys_that_become_alike_keep_their_entries() -> None:
    redactor = Redactor({"A": "alphaalpha", "B": "betabeta"})
    cleaned = redactor.value({"alphaalpha": 1, "[redacted:A]": 2, "betabeta": [3]})
    assert cleaned == {"[redacted:A]": 1, "[redacted:A]#2": 2, "[redacted:B]": [3]}


def test_a_number_that_is_a_secret_is_hidden_and_one_that_contains_it_is_not() -> None:
    redactor = Redactor({"PIN_CODE": "73910482"})
    assert redactor.json_text('{"pin":73910482,"size":173910482,"on":true}') == (
        '{"pin":"[redacted:PIN_CODE]","size":173910482,"on":true}'
    )


def test_an_authorization_header_kept_as_an_object_is_hidden() -> None:
    headers = {
        "Authorization": "Basic dXNlcjpwYXNz",
        "authorization": "required",
        "x": "Basic idea",
    }
    cleaned = json.loads(Redactor({}).json_text(json.dumps(headers)))
    assert cleaned == {
        "Authorization": "Basic [redacted:authorization]",
        "authorization": "required",
        "x": "Basic idea",
    }


def test_configured_patterns_are_hidden_and_see_whole_decoded_strings() -> None:
    redactor = Redactor({}, [r"^customer-\d+$", r"line one\nline two"])
    document = {"id": "customer-12", "text": "see customer-12", "log": "x line one\nline two"}
    assert json.loads(redactor.json_text(to_json(document).decode())) == {
        "id": "[redacted:pattern]",
        "text": "see customer-12",
        "log": "x [redacted:pattern]",
    }


def test_a_pattern_that_fits_an_empty_place_puts_nothing_there() -> None:
    assert Redactor({}, [r"(?=x)|yy"]).text("xyyz") == "x[redacted:pattern]z"


@pytest.mark.parametrize(
    "pattern", [r".+", r'"', r"[:,{}\[\]]", r"\w+", r"[0-9a-f]{8,}", r"(?=x)|y"]
)
@settings(max_examples=examples(30))
@given(document=st.dictionaries(st.text(), leaves | st.lists(leaves), max_size=4))
def test_no_pattern_can_damage_the_json(pattern: str, document: Json) -> None:
    redactor = Redactor({}, [pattern])
    written = redactor.json_text(to_json(document).decode())
    assert len(json.loads(written)) == len(document)


def a_call(run_id: str, index: int = 0) -> Call:
    return Call(run_id=run_id, step_key="build#0", index=index, tool="deploy")


@pytest.mark.parametrize("pattern", [r"[0-9a-f]{32}", r"\d{4}-\d\d-\d\d", r"[a-z_]{4,}", r"T\d"])
def test_an_event_can_be_read_back_whatever_the_patterns_are(pattern: str) -> None:
    run_id = mint_id("run", 1_760_000_000_000)
    body = ApprovalRequested(
        approval_id=mint_id("approval", 1_760_000_000_000),
        call=a_call(run_id).key,
        tool="deploy",
        summary="0123456789abcdef0123456789abcdef on 2026-01-02 T4 tomorrow",
        digest="sha256:" + "0" * 64,
        tier="T3",
        deadline=datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC),
    )
    written = Redactor({}, [pattern]).json_text(body.model_dump_json())
    read_back = read_body(json.loads(written))
    assert isinstance(read_back, ApprovalRequested)
    assert "[redacted:pattern]" in read_back.summary
    assert read_back.model_copy(update={"summary": body.summary, "tool": "deploy"}) == body


@pytest.mark.parametrize(
    "pattern", [r"[0-9a-f]{32}", r"[0-9a-f]{8,}", r"[0-9a-f]{12}\.\d", r"run_"]
)
def test_a_stored_call_is_found_again_whatever_the_patterns_are(pattern: str) -> None:
    call = a_call(mint_id("run", 1_760_000_000_000), index=12)
    record = CallRecord(
        key=call.key,
        run_id=call.run_id,
        step_key=call.step_key,
        tool=call.tool,
        digest=call.digest(),
        status=CallStatus.REQUESTED,
        decision=Decision(effect=Effect.ALLOW, rule="r", reason="as told", tier=Tier.T1),
        arguments={"commit": "0123456789abcdef0123456789abcdef, run_ 0123456789ab.0"},
        requested_at=datetime(2026, 1, 2, tzinfo=UTC),
    )
    written = Redactor({}, [pattern]).json_text(record.model_dump_json())
    read_back = CallRecord.model_validate_json(written)
    assert "[redacted:pattern]" in read_back.arguments["commit"]
    assert read_back.model_copy(update={"arguments": record.arguments}) == record


@pytest.mark.parametrize("name", ["approval", "child", "wait:child"])
def test_the_name_a_run_waits_by_stays_whole(name: str) -> None:
    waits_for = f"{name}:{mint_id('run', 1_760_000_000_000)}"
    redactor = Redactor({}, [r"[0-9a-f]{32}"])
    assert json.loads(redactor.json_text(json.dumps([waits_for, f"see {waits_for}"]))) == [
        waits_for,
        f"see {name}:run_[redacted:pattern]",
    ]


def test_a_broken_pattern_is_named_with_the_reason() -> None:
    with pytest.raises(BadInput, match=r"'\(oops'.*unterminated"):
        Redactor({}, ["fine", "(oops"])


def test_a_pattern_that_fits_nothing_at_all_is_refused() -> None:
    with pytest.raises(BadInput, match=r"'a\*'.*empty"):
        Redactor({}, ["a*"])


@pytest.mark.parametrize(
    "value", ["12345", "  x  ", "tool_requested", "version", "redacted", "NAMED_KEY"]
)
def test_a_given_secret_that_cannot_be_hidden_is_refused_without_showing_it(value: str) -> None:
    with pytest.raises(BadInput, match="'NAMED_KEY' cannot be redacted") as caught:
        Redactor({"NAMED_KEY": value})
    assert value not in str(caught.value).replace("'NAMED_KEY'", "").replace(
        "cannot be redacted", ""
    )


def test_ordinary_words_in_secret_variables_do_not_eat_the_record() -> None:
    redactor = Redactor.from_environment({"KEY_STATE": "completed", "AUTH_BY": "github"})
    text = '{"type":"tool_completed","from":"github"}'
    assert redactor.json_text(text) == text


def test_what_is_not_json_is_refused_when_it_holds_a_secret() -> None:
    with pytest.raises(BadInput, match="that is not JSON"):
        Redactor({"A_KEY": "Zk3vQ9xT7w"}).json_text("{Zk3vQ9xT7w")


def test_a_document_nested_too_deep_is_refused_not_let_through() -> None:
    deep = "[" * 5000 + '"Zk3vQ9xT7w"' + "]" * 5000
    with pytest.raises(BadInput, match="cannot redact"):
        Redactor({"A_KEY": "Zk3vQ9xT7w"}).json_text(deep)


def test_a_process_that_prints_its_whole_environment_gives_no_secret_away() -> None:
    secrets = {
        "OPENAI_API_KEY": "kq7-Zt2w'Vb9\"$x\\y",
        "DEPLOY_TOKEN": "äöü-0123456789",
        "SIGNING_KEY": "-----line one of it-----\nline two of it, long\nx",
        "STORE_URL": "postgresql://ada:s3cr%2Fet-pw@db/main",
    }
    environ = {"HOME": "/nonexistent", "LANG": "C.UTF-8", "PYTHONUTF8": "1", **secrets}
    program = (
        "import json, os, sys, urllib.parse as u\n"
        "for name, value in os.environ.items(): print(f'{name}={value}')\n"
        "print(os.environ); print(json.dumps(dict(os.environ))); print(u.urlencode(os.environ))\n"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program],
        env=environ,
        capture_output=True,
        check=True,
        encoding="utf-8",
    ).stdout
    body = ToolCompleted(call="c", tool="run_command", result={"stdout": printed}, receipt=1)
    written = Redactor.from_environment(environ).json_text(body.model_dump_json())
    stdout = json.loads(written)["result"]["stdout"]
    for part in ["kq7-Zt2w", "äöü", "\\u00e4", "%C3%A4", "line one", "line+two", "s3cr"]:
        assert part in printed
        assert part not in stdout
    assert "/nonexistent" in stdout


@pytest.mark.soak
def test_five_megabytes_are_cleaned_in_the_time_of_reading_them() -> None:
    redactor = Redactor({f"KEY_{n}": f"Zk3v{n}Q9xT7w" for n in range(10)}, [r"customer-\d+"])
    line = f"some output of a build, 0123 {GITHUB} and Zk3v4Q9xT7w for customer-7\n"

    def clean(size: int) -> None:
        written = redactor.json_text(to_json({"stdout": line * (size // len(line))}).decode())
        assert GITHUB not in written
        assert written.count("[redacted:KEY_4]") == size // len(line)

    assert_linear_cost(clean, 5_000_000)
