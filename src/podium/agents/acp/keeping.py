"""The transcript of an ACP conversation: every line, but words that come in pieces as a whole."""

from __future__ import annotations

import json
from typing import Literal

from podium.agents.headless.kept_lines import heard_line, sent_line
from podium.domain.errors import AgentLost
from podium.ports import Transcript

LINE_BYTES = 64 * 1024 * 1024
_PIECES = ("agent_message_chunk", "agent_thought_chunk", "user_message_chunk")


class Keeper:
    """Sees every line that goes over the wire. In pieces a secret could not be told from words."""

    def __init__(self, transcript: Transcript, agent: str) -> None:
        self._transcript = transcript
        self._agent = agent
        self._kind = ""
        self._pieces: list[str] = []

    def keep(self, way: Literal["sent", "received"], line: str) -> None:
        """Keep a line. Raises `AgentLost` for one that was cut because it is too long to be read."""
        piece = _piece_in(line) if way == "received" else None
        if piece is None:
            self.finish()
            self._transcript.write(sent_line(line) if way == "sent" else heard_line(line))
        else:
            self._add(*piece)
        if len(line) * 4 >= LINE_BYTES and len(line.encode(errors="replace")) >= LINE_BYTES:
            raise AgentLost(
                f"agent {self._agent!r} wrote a line of more than {LINE_BYTES} bytes; "
                "it cannot be read"
            )

    def finish(self) -> None:
        """Keep the words that came last."""
        if self._pieces:
            said = {self._kind: "".join(self._pieces)}
            self._pieces.clear()
            self._transcript.write(json.dumps(said, ensure_ascii=False))

    def _add(self, kind: str, words: str) -> None:
        if kind != self._kind:
            self.finish()
        self._kind = kind
        self._pieces.append(words)


def _piece_in(line: str) -> tuple[str, str] | None:
    if '_chunk"' not in line[:1_000]:
        return None
    try:
        update = json.loads(line)["params"]["update"]
        kind, words = update["sessionUpdate"], update["content"]["text"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return (kind, words) if kind in _PIECES and isinstance(words, str) else None
