"""What a terminal in a browser is told so that it shows a pane: only what is other than before."""

from __future__ import annotations

from podium.domain.terminals import PaneFrame

_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"
_WIPE = "\x1b[0m\x1b[2K"


def repainted(before: PaneFrame | None, now: PaneFrame) -> str:
    """Escapes that turn one picture into the other, on a terminal of the same size.

    From nothing, or from another size, all is painted. The lines hold colours and characters alone, so that
    nothing a program wrote reaches the browser's terminal but these.
    """
    same = before is not None and (before.columns, before.rows) == (now.columns, now.rows)
    known = before.lines if before is not None and same else ()
    parts = [_HIDE] if same else [_HIDE, "\x1b[0m\x1b[2J"]
    for row in range(now.rows):
        line = _line(now.lines, row)
        if not same or line != _line(known, row):
            # Wiped first: a line that fills its row leaves the cursor on its last character, which would go with the rest.
            parts.append(f"\x1b[{row + 1};1H{_WIPE}{line}")
    parts.append(f"\x1b[{now.cursor_row + 1};{now.cursor_column + 1}H")
    if now.cursor_shown and not now.dead:
        parts.append(_SHOW)
    return "".join(parts)


def _line(lines: tuple[str, ...], row: int) -> str:
    return lines[row] if row < len(lines) else ""
