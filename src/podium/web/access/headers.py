"""What browsers are told of every answer: run nothing that is not ours, keep nothing, frame nothing."""

from __future__ import annotations

from collections.abc import Iterable

_PARTS = (
    "default-src 'none'; script-src 'self'; style-src 'self'{styles}; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
POLICY = _PARTS.format(styles="").encode()
TERMINAL_POLICY = _PARTS.format(styles=" 'unsafe-inline'").encode()
"""For the page with terminals alone: xterm.js places its cells by style elements that it writes itself."""
TERMINAL_PAGES = "/duet"
STATIC = "/static/"
VENDORED = "/static/vendor/"
_YEAR_SECONDS = 31_536_000

_ALWAYS = (
    (b"x-content-type-options", b"nosniff"),
    # With no-referrer browsers would tell no origin of a form either.
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
)
_TRANSPORT = (b"strict-transport-security", f"max-age={_YEAR_SECONDS}".encode())

Pairs = list[tuple[bytes, bytes]]


def told_headers(path: str, given: Iterable[tuple[bytes, bytes]], *, lasting_tls: bool) -> Pairs:
    """Those that the handler gave, and ours. `lasting_tls`: the name is to be asked for by TLS alone."""
    ours = [(b"content-security-policy", _policy(path)), *_ALWAYS]
    ours.append((b"cache-control", _keeping(path)))
    if lasting_tls:
        ours.append(_TRANSPORT)
    kept = [(name.lower(), value) for name, value in given]
    known = {name for name, _ in kept}
    return [*kept, *(pair for pair in ours if pair[0] not in known)]


def _policy(path: str) -> bytes:
    on_terminals = path == TERMINAL_PAGES or path.startswith(f"{TERMINAL_PAGES}/")
    return TERMINAL_POLICY if on_terminals else POLICY


def _keeping(path: str) -> bytes:
    if path.startswith(VENDORED):
        # Its version stands in the path.
        return f"max-age={_YEAR_SECONDS}, immutable".encode()
    return b"no-cache" if path.startswith(STATIC) else b"no-store"
