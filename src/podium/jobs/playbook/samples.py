"""Playbooks that ship with Podium, each with a plugin to try it on."""

from __future__ import annotations

import shutil
from pathlib import Path

from podium.core.errors import BadInput
from podium.core.model import FrozenModel
from podium.platform import shipped_folder

PLAYBOOK_FILE = "playbook.md"
SCRIPT_FILE = "script.yaml"
INPUTS = {"bump-compatibility": {"host_version": "5.2"}}
"""Inputs that the scripts of the samples need, if not the defaults."""

_SETTINGS = """\
# The agent of this sample follows a script: no model, no key. To use a real one, add it here, such as
#   gemini: {kind: api, model: "google:gemini-2.5-flash", env: {GEMINI_API_KEY: "secret://GEMINI_API_KEY"}}
# with `secrets: [GEMINI_API_KEY]` in your own settings (`podium config show --origin` shows where), and pass
# `--agent gemini`.
agents:
  script: {kind: scripted, script: .sample/script.yaml}
flows:
  playbook: {agent: script}
"""


class PlaybookSample(FrozenModel):
    """A sample that was copied."""

    name: str
    folder: str
    command: str
    """Command that runs it, from its folder."""


def shipped_playbooks() -> Path:
    """The folder of the playbooks that come with Podium, installed or in a checkout."""
    return shipped_folder("playbooks")


def sample_names() -> list[str]:
    folder = shipped_playbooks()
    if not folder.is_dir():
        return []
    return sorted(path.name for path in folder.iterdir() if (path / PLAYBOOK_FILE).is_file())


def lay_out(name: str, target: Path) -> PlaybookSample:
    """Copy a sample's plugin, playbook and script into a new or empty folder. Raises `BadInput`."""
    if name not in sample_names():
        listed = (
            ", ".join(sample_names()) or "none, because this installation does not include them"
        )
        raise BadInput(f"unknown sample {name!r}; samples: {listed}")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise BadInput(f"{str(target)!r} already exists and is not empty; choose another folder")
    source = shipped_playbooks() / name
    try:
        shutil.copytree(
            source / "plugin",
            target,
            dirs_exist_ok=True,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        shutil.copyfile(source / PLAYBOOK_FILE, target / PLAYBOOK_FILE)
        (target / ".sample").mkdir()
        shutil.copyfile(source / SCRIPT_FILE, target / ".sample" / SCRIPT_FILE)
        (target / "podium.yaml").write_text(_SETTINGS)
    except OSError as error:
        raise BadInput(f"{str(target)!r} cannot be written: {error.strerror or error}") from None
    inputs = "".join(f" --input {key}={value}" for key, value in INPUTS.get(name, {}).items())
    return PlaybookSample(
        name=name, folder=str(target), command=f"podium playbook run {PLAYBOOK_FILE}{inputs}"
    )
