"""Rules of every test here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.timing import process_kinds


@pytest.fixture(autouse=True)
def _starts_no_process() -> Iterator[None]:
    """A test that starts one belongs into tests/integration."""
    yield
    assert process_kinds() == set(), (
        "tests here start no process; move this one to tests/integration"
    )
