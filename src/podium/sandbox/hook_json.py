"""JSON as the hook client needs it, by the C half of `json` alone.

The other half loads `re` and `enum`, which takes longer than the interpreter itself to start. That
C half is no promise of Python's, so where it is not as known the whole of `json` is loaded.
"""

from __future__ import annotations


class _ScanState:
    """The state that the scanner asks for. Numbers that JSON does not have are read as Python does."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    array_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


def _refuse(value: object) -> object:
    raise TypeError(f"{type(value).__name__} is not for JSON")


try:
    import _json

    _scan: _json.make_scanner | None = _json.make_scanner(_ScanState)  # type: ignore[arg-type]  # anything with these names
    _write: _json.make_encoder | None = _json.make_encoder(
        {}, _refuse, _json.encode_basestring_ascii, None, ": ", ", ", False, False, True
    )
except (ImportError, AttributeError, TypeError):
    _scan = _write = None


def loads(text: bytes) -> object:
    """The value this is. Raises `ValueError` when it is not exactly one, in UTF-8."""
    if _scan is None:
        import json

        return json.loads(text)
    decoded = text.decode().strip(" \t\n\r")
    try:
        value, end = _scan(decoded, 0)
    except (StopIteration, SystemError):
        # The second, for some of what is broken, where the other half is not loaded.
        raise ValueError("no JSON") from None
    if end != len(decoded):
        raise ValueError(f"no JSON from character {end} on")
    return value


def dumps(value: object) -> str:
    """The value in one line of ASCII. Raises `TypeError` for what JSON does not have."""
    if _write is None:
        import json

        return json.dumps(value)
    return "".join(_write(value, 0))
