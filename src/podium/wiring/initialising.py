"""Making a folder a Podium project: everything at once, or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from podium.domain.errors import BadInput, NotPossibleNow
from podium.wiring.folders import PROJECT_FILE, STATE_FOLDER, refuse_foreign_state
from podium.wiring.writing import write_new, write_whole

TEMPLATE = """\
# Settings of Podium for this project. Unknown keys are errors; `podium config show --origin`
# says what is in force and why. What guards (policy, budgets, sandbox) only tightens: nothing
# here can loosen what your own settings say.

# How far Podium goes by itself: sensing, dry-run, supervised or autonomous.
mode: supervised

# Brains, by a name of your choice: claude, gemini, codex or opencode as they are installed and logged
# in (`podium agents list`), acp, api, any command; a `scripted` one plays what its file says, without a model.
# agents:
#   claude: {kind: claude}
#   player: {kind: scripted, script: script.yaml}

# Which agent plays which part of `podium run`; `default` plays whatever nobody else does, and a list
# of agents is failover.
# roles:
#   default: {agent: claude}
#   auditor: {agent: [claude, player]}

# Who may answer when a rule asks for a group.
# approvers:
#   owner: [ann]

# Limits that end a run before they are passed.
# budgets:
#   run: {usd: 5.0, seconds: 3600}

# What is never written down, beside known token shapes and secret variables.
# redact: ['internal-[0-9]{6}']
"""

_AGENTS = """\
# agents:
#   claude: {kind: claude}
#   player: {kind: scripted, script: script.yaml}
"""
_ROLES = """\
# roles:
#   default: {agent: claude}
#   auditor: {agent: [claude, player]}
"""

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

SCRIPT_FILE = "script.yaml"

IGNORE_LINE = f"{STATE_FOLDER}/"


def init_project(folder: Path, *, agents: Sequence[str] = (), example: bool = False) -> list[str]:
    """Write `podium.yaml`, make `.podium/` and let git ignore it. Gives the names of what was made.

    `agents` are kinds to name in it, the first for every role. With `example` also scenes and a script, so that `podium rehearse` works at once. Raises `NotPossibleNow` when the project is there already; nothing is changed then.
    """
    if not folder.is_dir():
        raise BadInput(f"there is no folder {str(folder)!r} to make a project of")
    project_file = folder / PROJECT_FILE
    if project_file.exists() or project_file.is_symlink():
        raise NotPossibleNow(f"{str(project_file)!r} is there already; nothing was changed")
    script = folder / SCRIPT_FILE
    if example and (script.exists() or script.is_symlink()):
        raise NotPossibleNow(f"{str(script)!r} is there already; nothing was changed")
    ignored = folder / ".gitignore"
    before = _text_of(ignored)
    state = folder / STATE_FOLDER
    made_state = _make_state(state)
    try:
        now_ignored = _ignore(ignored, before)
        if example:
            write_new(script, EXAMPLE_SCRIPT)
        text = TEMPLATE + EXAMPLE if example else _naming(agents)
        write_new(project_file, text)
    except BaseException:
        _undo(state if made_state else None, ignored, before)
        if example:
            script.unlink(missing_ok=True)
        raise
    names = [PROJECT_FILE, SCRIPT_FILE] if example else [PROJECT_FILE]
    names += [f"{STATE_FOLDER}/"] if made_state else []
    return names + ([".gitignore"] if now_ignored else [])


def _naming(agents: Sequence[str]) -> str:
    """The template, with these agents in place of its commented example."""
    if not agents:
        return TEMPLATE
    named = "".join(f"  {kind}: {{kind: {kind}}}\n" for kind in agents)
    return TEMPLATE.replace(_AGENTS, f"agents:\n{named}").replace(
        _ROLES, f"roles:\n  default: {{agent: {agents[0]}}}\n"
    )


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


def _text_of(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{str(file)!r} cannot be read: {error}") from None


def _ignore(file: Path, before: str | None) -> bool:
    lines = (before or "").splitlines()
    if {IGNORE_LINE, STATE_FOLDER, f"/{IGNORE_LINE}"} & {line.strip() for line in lines}:
        return False
    text = before or ""
    text += "" if not text or text.endswith("\n") else "\n"
    write_whole(file, text + IGNORE_LINE + "\n")
    return True


def _undo(state: Path | None, ignored: Path, before: str | None) -> None:
    if state is not None:
        state.rmdir()
    if before is None:
        ignored.unlink(missing_ok=True)
    else:
        write_whole(ignored, before)
