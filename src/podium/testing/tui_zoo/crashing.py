"""Dies at the first paste, with last words that scroll by."""

from __future__ import annotations

from podium.testing.tui_zoo.composer import Composer

EXIT_CODE = 70


class Crashing(Composer):
    def pasted(self, data: bytes) -> None:
        self.write("".join(f"trace {number}\r\n" for number in range(50)))
        self.write("fatal: out of memory\r\n")
        self.die(EXIT_CODE)


def main(record: str, answers: str = "") -> None:
    Crashing(record, answers).run()
