"""Cost of redacting clean documents, against a redactor that looks for no encodings of its secrets."""

from __future__ import annotations

import json
import random
import string
import time
from collections.abc import Mapping, Sequence

from benchmarks.figures import Figure
from podium.core.encoded_secrets import EncodedSecrets
from podium.store.redaction import Redactor

ROUNDS = 15
_SECRETS = 10
_PLAIN = {"type": "step_completed", "step": "build#0", "output": "word " * 80}
_LINES = {"type": "tool_completed", "stdout": 'line 7: "ok" passed in 0.3s\n' * 14}
_LARGE = {
    "type": "tool_completed",
    "stdout": "a line of a build, 0123 passed, 100% & more\n" * 2000,
}


class _Plain(Redactor):
    """One that knows values only as they are written."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        super().__init__(secrets)
        self._encoded = EncodedSecrets(())


async def measure() -> Sequence[Figure]:
    random.seed(3)
    characters = string.ascii_letters + string.digits
    secrets = {f"T{n}_KEY": "".join(random.choices(characters, k=40)) for n in range(_SECRETS)}
    ours, plain = Redactor(secrets), _Plain(secrets)
    return [
        Figure(
            f"redact {name}, {_SECRETS} secrets",
            _best(ours, json.dumps(document), times) * 1e6,
            "us",
            _best(plain, json.dumps(document), times) * 1e6,
            "as written only",
            most_ratio=8,
        )
        for name, document, times in (
            ("a plain event of 450 B", _PLAIN, 1000),
            ("an event of 14 lines", _LINES, 1000),
            ("an output of 90 KB", _LARGE, 20),
        )
    ]


def _best(redactor: Redactor, document: str, times: int) -> float:
    """Seconds of processor time for one document, at best: others share the machine."""
    spent = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        for _ in range(times):
            redactor.json_text(document)
        spent.append((time.process_time() - begun) / times)
    return min(spent)
