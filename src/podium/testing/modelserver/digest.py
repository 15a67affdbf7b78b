"""What makes two requests the same: method, path and body, without what differs from run to run.

From the body are dropped: keys that hold ids and who is asking (`VOLATILE_KEYS`), and in texts the
context blocks that CLIs put beside a prompt. Replaced by a placeholder are ids, dates, times of day,
absolute paths, decimals and numbers of four digits or more.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from podium.testing.modelserver.http import Request
from podium.testing.modelserver.requests import public_target

VOLATILE_KEYS = frozenset(
    {
        "id",
        "call_id",
        "tool_call_id",
        "tool_use_id",
        "item_id",
        "session_id",
        "previous_response_id",
        "prompt_cache_key",
        "safety_identifier",
        "user",
        "metadata",
        "client_metadata",
        "encrypted_content",
        "signature",
        "thoughtSignature",
        "session_context",
    }
)

CONTEXT_TAGS = ("session_context", "environment_context", "system-reminder", "user_instructions")

_DAY = r"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_PLACEHOLDERS = [
    (re.compile(expression), placeholder)
    for expression, placeholder in (
        (r"x-anthropic-billing-header:[^\n\"]*", "<id>"),  # claude: changes with the session
        (r"\bChunk ID: [0-9a-f]+", "<id>"),  # codex: on top of a command's output
        (r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b", "<id>"),
        (r"\b(?:call|toolu|msg|resp|fc|ctc|rs|req|ses|prt)_[A-Za-z0-9]{8,}", "<id>"),
        (
            r"\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?",
            "<date>",
        ),
        (rf"(?:\b{_DAY},? )?\b{_MONTH}\.? \d{{1,2}},? \d{{4}}\b", "<date>"),
        (r"\b\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?: ?[AP]M)?\b", "<date>"),
        (r"(?<![\w/.:<])/(?:[\w.@+-]+/)*[\w.@+-]+/?", "<path>"),
        (r"\b(?=[a-f]{0,40}\d)[0-9a-f]{7,64}\b", "<id>"),
        (r"\b\d+\.\d+\b|\b\d{4,}\b", "<number>"),
    )
]


def digest_of(request: Request) -> str:
    """`sha256:…` of the request as these rules see it."""
    known = [request.method, public_target(request.target), _normal_body(request.body)]
    content = json.dumps(known, sort_keys=True, ensure_ascii=True)
    return "sha256:" + hashlib.sha256(content.encode()).hexdigest()


def _normal_body(body: bytes) -> Any:
    try:
        return _normal(json.loads(body)) if body else None
    except (ValueError, RecursionError):
        return body.decode("latin-1")


def _normal(value: Any) -> Any:
    if isinstance(value, str):
        return normal_text(value)
    if isinstance(value, list):
        return [_normal(each) for each in value]
    if isinstance(value, Mapping):
        return {key: _normal(each) for key, each in value.items() if key not in VOLATILE_KEYS}
    return value


def normal_text(text: str) -> str:
    """The text without a CLI's context, and with placeholders for what differs from run to run."""
    for tag in CONTEXT_TAGS:
        text = _without_blocks(text, f"<{tag}>", f"</{tag}>")
    for expression, placeholder in _PLACEHOLDERS:
        text = expression.sub(placeholder, text)
    return text


def _without_blocks(text: str, start: str, end: str) -> str:
    """Looks for each end once: a text of a million starts costs no more than any other."""
    kept, at = [], 0
    while (found := text.find(start, at)) >= 0 and (close := text.find(end, found)) >= 0:
        kept.append(text[at:found])
        at = close + len(end)
    return "".join([*kept, text[at:]])
