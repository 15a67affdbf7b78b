"""Removal of secrets from everything that leaves a source or is written for others."""

from __future__ import annotations

from podium.core.model import Json
from podium.jobs.sense.io.content import redacted
from podium.store import Redactor

SECRET = "hunter2-hunter2"
REDACT = Redactor({"API_KEY": SECRET, "PIN": "8812345678", "OTHER_KEY": "swordfish-swordfish"}).text


def clean(value: Json) -> Json:
    return redacted(value, REDACT)


def test_secrets_go_from_texts_keys_numbers_and_what_is_nested() -> None:
    given = {"a": [f"say {SECRET}", ("x", {SECRET: 1})], "pin": 8812345678, "port": 8080, "on": True}  # fmt: skip
    found = clean(given)
    assert SECRET not in str(found)
    assert "8812345678" not in str(found)
    assert (found["port"], found["on"]) == (8080, True)


def test_a_secret_is_known_by_the_name_before_it() -> None:
    found = clean({"Authorization": "Bearer abcdefghijklmnopqrstuvwxyz012345", "status": "ok"})
    assert "abcdefghijklmnop" not in found["Authorization"]
    assert found["status"] == "ok"


def test_two_secrets_in_keys_do_not_become_one() -> None:
    found = clean({SECRET: 1, "swordfish-swordfish": 2, f"{SECRET}!": 3})
    assert sorted(found.values()) == [1, 2, 3]
    assert "hunter2" not in str(found)


def test_what_is_no_text_is_replaced_and_the_rest_stays_as_it_is() -> None:
    assert clean({"half": "\ud800", "none": None, "part": 0.5}) == {"half": "?", "none": None, "part": 0.5}  # fmt: skip
