"""A project with a duet of two small programs, each asked once a turn, and the command line on it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml

from podium.testing.fake_tuis import messages
from tests.integration.cli.command_runner import CommandResult, CommandRunner

# Loads one file of the fake TUIs and nothing else of Podium: it is started for every turn.
BRAIN = (
    f"""
import sys
sys.path.insert(0, {str(Path(messages.__file__).parent)!r})
from messages import requested_block
"""
    + """
prompt = sys.stdin.read()
wanted = requested_block(prompt)
if wanted is None:
    print("READY")
elif wanted.allows_text:
    print("It is all done.")
else:
    to, kind = wanted.forms[0]
    section = kind.upper()
    print(f'[[POLI:MSG {{"to":"{to}","type":"{kind}","id":"{wanted.id}"}}]]')
    print(f"<{section}>\\n1. look\\n2. mend\\n</{section}>\\n[[/POLI:MSG]]")
"""
)


class Hall:
    """A desk whose planner and executer are programs of ours."""

    def __init__(self, cli: CommandRunner) -> None:
        self.cli = cli
        self.settings()

    def brain(self, name: str, code: str = BRAIN) -> Path:
        file = self.cli.project / f"{name}.py"
        file.write_text(code)
        return file

    def settings(self, **duet: Any) -> None:
        self.brain("brain")
        command = [sys.executable, "brain.py"]
        agents = {name: {"kind": "command", "command": command} for name in ("ann", "bob")}
        flow = {"planner": "ann", "executer": "bob", "transport": "headless", **duet}
        self.cli.home.mkdir(exist_ok=True)
        # The person's own file: a project's commands would have to be trusted first.
        (self.cli.home / "config.yaml").write_text(
            yaml.safe_dump({"agents": agents, "flows": {"duet": flow}, "sandbox": {"kind": "none"}})
        )

    def duet(self, *arguments: str) -> CommandResult:
        return self.cli.run("duet", *arguments)
