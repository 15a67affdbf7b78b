"""Making a folder a Podium project: everything at once, or nothing."""

from __future__ import annotations

import os
from pathlib import Path

from podium.domain.errors import BadInput, NotPossibleNow
from podium.wiring.folders import IGNORE_FILE, PROJECT_FILE, STATE_FOLDER, refuse_foreign_state
from podium.wiring.project_proposal import NOTHING_PROPOSED, Proposal, project_text
from podium.wiring.writing import write_new

EXAMPLE = """\

# What `podium rehearse` plays: this needs no model and no key.
agents:
  player: {kind: scripted, script: script.yaml}

roles:
  looker: {agent: player, description: looks around}
  writer: {agent: player, description: leaves a note}

flows:
  rehearsal:
    scenes:
      - {name: look, role: looker, prompt: Look around.}
      - {name: write, role: writer, prompt: Leave a note.}
"""

EXAMPLE_SCRIPT = """\
# What the scripted agent does, turn by turn. Every `call` passes the gate.
turns:
  - role: looker
    acts:
      - call: list_files
      - call: run_command
        with: {command: git push origin main}
      - say: I have looked around. Pushing was refused, as it should be.

  - role: writer
    acts:
      - call: write_file
        with: {path: hello.txt, content: "Hello from a rehearsal.\\n"}
      - call: finish
        with: {summary: Left a note in hello.txt.}
      - say: Done.
"""

PACK_EXAMPLE = """\

# What `podium ask` can do: the tools of this pack.
flows:
  operator:
    pack: {pack}
"""

SCRIPT_FILE = "script.yaml"


def init_project(
    folder: Path,
    proposal: Proposal = NOTHING_PROPOSED,
    *,
    example: bool = False,
    pack: str = "",
) -> list[str]:
    """Write `podium.yaml` and make `.podium/`, which git ignores. Gives the names of what was made.

    With `example` also scenes and a script, so that `podium rehearse` works at once. `pack` is the one that `podium ask`
    uses; empty: its default. Raises `NotPossibleNow` when the project is there already; nothing is changed then.
    """
    if not folder.is_dir():
        raise BadInput(f"there is no folder {str(folder)!r} to make a project of")
    check_writable(folder)
    project_file, script = folder / PROJECT_FILE, folder / SCRIPT_FILE
    for file in (project_file, script) if example else (project_file,):
        if os.path.lexists(file):
            raise NotPossibleNow(f"{str(file)!r} is there already; nothing was changed")
    state = folder / STATE_FOLDER
    made_state = _make_state(state)
    try:
        if made_state:
            write_new(state / IGNORE_FILE, "*\n")
        if example:
            write_new(script, EXAMPLE_SCRIPT)
        text = project_text(proposal) + (EXAMPLE if example else "")
        write_new(project_file, text + (PACK_EXAMPLE.format(pack=pack) if pack else ""))
    except BaseException:
        if made_state:
            (state / IGNORE_FILE).unlink(missing_ok=True)
            state.rmdir()
        if example:
            script.unlink(missing_ok=True)
        raise
    names = [PROJECT_FILE, SCRIPT_FILE] if example else [PROJECT_FILE]
    return names + ([f"{STATE_FOLDER}/"] if made_state else [])


def check_writable(folder: Path) -> None:
    """Raise `BadInput` for a folder that nothing can be written to."""
    if not os.access(folder, os.W_OK | os.X_OK):
        raise BadInput(f"{str(folder)!r} cannot be written to; nothing was changed")


def _make_state(state: Path) -> bool:
    refuse_foreign_state(state)
    try:
        state.mkdir(mode=0o700)
    except FileExistsError:
        state.chmod(0o700)
        return False
    except OSError as error:
        raise BadInput(f"{str(state)!r} cannot be made: {error.strerror}") from None
    return True
