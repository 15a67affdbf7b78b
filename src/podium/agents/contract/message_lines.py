"""A text that comes in pieces, cut into lines."""

from __future__ import annotations

from collections.abc import Iterator


class Lines:
    """Whole lines out of pieces that are cut anywhere. Of a line that is too long only that much is kept."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._pieces: list[str] = []
        self._characters = 0

    def feed(self, chunk: str) -> Iterator[str | None]:
        """The lines that this piece ends, without their breaks. None stands for one that is too long."""
        *ended, last = chunk.split("\n")
        for piece in ended:
            if self._characters:
                self._add(piece)
                yield self._line()
            else:
                yield piece if len(piece) <= self._most else None
        self._add(last)

    def end(self) -> Iterator[str | None]:
        """The last line, when no break ends it."""
        if self._characters:
            yield self._line()

    def _add(self, piece: str) -> None:
        self._characters += len(piece)
        if self._characters > self._most:
            self._pieces.clear()
        elif piece:
            self._pieces.append(piece)

    def _line(self) -> str | None:
        line = None if self._characters > self._most else "".join(self._pieces)
        self._pieces.clear()
        self._characters = 0
        return line
