"""Words made fit for a terminal, and the commands that put them in."""

from __future__ import annotations

import re
from pathlib import Path

from podium.agents.contract.cleaning import without_escapes
from podium.agents.private_files import write_private
from podium.agents.tui.quoting import quoted
from podium.agents.tui.seeing import Manner
from podium.domain.errors import BadInput
from podium.platform import make_private_folder

LONGEST_LINE_BYTES = 4000
"""A terminal that reads plain lines keeps 4095 bytes of one and drops the rest."""

_NO_TEXT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def fit_for_terminal(text: str) -> str:
    """The text without anything a terminal would obey: an escape in a paste ends it, and what follows is typed.

    Line ends become newlines; tabs stay. Raises `BadInput` when no words are left.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    words = _NO_TEXT.sub("", without_escapes(lines))
    if not words.strip():
        raise BadInput("there is nothing to send: the message has no words")
    return words


def fits(words: str, manner: Manner, longest_paste_bytes: int) -> bool:
    """Whether the words themselves can be put in, and need not be handed over as a file."""
    if manner == "reference":
        return "\n" not in words and len(words.encode(errors="replace")) <= LONGEST_LINE_BYTES
    if manner == "lines":
        lines = words.encode(errors="replace").split(b"\n")
        return max(map(len, lines)) <= LONGEST_LINE_BYTES
    return len(words.encode(errors="replace")) <= longest_paste_bytes


def referring_to(folder: Path, name: str, words: str) -> str:
    """Write the words to a private file and give one line that says where they are. Blocks meanwhile."""
    make_private_folder(folder)
    file = folder.absolute() / name
    write_private(file, words.encode(errors="replace"))
    return f"Your message is in the file {file} - read all of it, then do what it says."


def loading(buffer: str, words: str) -> str:
    """The command that puts the words into a buffer of the server. Doing it again changes nothing."""
    return f"set-buffer -b {buffer} -- {quoted(words)}"


def pasting(buffer: str, pane: str) -> str:
    """The command that pastes a buffer and forgets it: in brackets where the program asked for them.

    With `-r` newlines stay: as carriage returns they were lost or doubled in some programs.
    """
    return f"paste-buffer -p -r -d -b {buffer} -t {pane}"


def typing(buffer: str, pane: str) -> str:
    """The command that types a buffer line by line, and Enter after the last."""
    return f"paste-buffer -d -b {buffer} -t {pane} ; send-keys -t {pane} C-m"
