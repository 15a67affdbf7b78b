"""A pack's secrets come back in no form in which programs write them down."""

from __future__ import annotations

import html
import json
from base64 import b64encode, urlsafe_b64encode
from urllib.parse import quote, quote_plus, urlencode

import pytest

from podium.core.errors import ToolBroke
from podium.tools.packs.pack_handler import PackSecrets

PLAIN = "supersecrettoken99"
ODD = 's/ü"p er&k+9'
HIDING = PackSecrets({"TOKEN": PLAIN, "ODD": ODD})


@pytest.mark.parametrize("secret", [PLAIN, ODD, "sixsix"])
@pytest.mark.parametrize("before", ["", "A", "AC", "AC1", "AC12:", "ä:"])
@pytest.mark.parametrize("behind", ["", "x", ":y"])
def test_a_login_in_base64_is_hidden_whole(secret: str, before: str, behind: str) -> None:
    hiding = PackSecrets({"TOKEN": secret})
    login = f"{before}{secret}{behind}".encode()

    for encoded in (b64encode(login), urlsafe_b64encode(login), b64encode(login).rstrip(b"=")):
        text = f"bad login 'Basic {encoded.decode()}', try again"
        assert hiding.text(text) == "bad login 'Basic [redacted:TOKEN]', try again"


@pytest.mark.parametrize(
    "text",
    [
        ODD,
        quote(ODD),
        quote(ODD, safe=""),
        quote_plus(ODD),
        "s%2f%c3%bc%22p%20er%26k%2b9",
        urlencode({"key": ODD}),
        json.dumps({"key": ODD}),
        json.dumps({"key": ODD}, ensure_ascii=False),
        json.dumps(json.dumps({"key": ODD})),
        json.dumps(ODD).replace("/", "\\/"),
        html.escape(ODD),
        repr({"key": ODD}),
    ],
)
def test_a_secret_is_hidden_as_addresses_json_and_pages_write_it(text: str) -> None:
    hidden = HIDING.text(f"it said {text}")

    assert "[redacted:ODD]" in hidden
    for part in ("p er", "p%20er", "p+er", "k+9", "k%2B9"):
        assert part not in hidden


def test_what_holds_no_secret_is_left_as_it_is() -> None:
    photo = b64encode(bytes(range(256)) * 4_000).decode()

    assert HIDING.text(photo) == photo
    assert HIDING.json({"a": [photo, 1, None]}) == {"a": [photo, 1, None]}


def test_several_logins_in_one_text_are_all_hidden() -> None:
    login = b64encode(f"a:{PLAIN}".encode()).decode()

    hidden = HIDING.text(f"{login},{login} and {login}{login}")

    assert hidden == "[redacted:TOKEN],[redacted:TOKEN] and [redacted:TOKEN]"


def test_the_words_of_a_failure_hide_them_too() -> None:
    login = b64encode(f"AC1:{PLAIN}".encode()).decode()

    error = HIDING.error("sms.send", ToolBroke(f"answered 400: bad login Basic {login}"))

    assert str(error) == "answered 400: bad login Basic [redacted:TOKEN]"


def test_a_secret_that_is_cut_where_the_quoting_ends_is_hidden_too() -> None:
    error = HIDING.error("sms.send", ToolBroke(f"answered 400: 'bad login {PLAIN[:11]}…'; mend it"))

    assert str(error) == "answered 400: 'bad login [redacted:TOKEN]…'; mend it"
