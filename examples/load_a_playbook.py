"""Read a playbook with an included page: headings are steps, inputs have types."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from podium.core.errors import ConfigInvalid
from podium.library import load_playbook

PLAYBOOK = """\
---
name: bump
description: Raise the version that the plugin was tested with.
inputs:
  version: {description: The version of the host.}
  strict: {type: boolean, default: true}
limits: {turns: 20, usd: 0.5}
success: ["@test"]
---
# Bump to {{ version }}

## Find the line

Look for `Tested up to:`.

```include
checks.md
```
"""

INCLUDED = """\
## Check the result

Run the checks. Strictly: {{ strict }}.
"""


def main() -> None:
    with TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "bump.md").write_text(PLAYBOOK)
        (folder / "checks.md").write_text(INCLUDED)
        playbook = load_playbook(folder / "bump.md")
        print(f"{playbook.head.name}: {playbook.head.description}")
        for number, step in enumerate(playbook.steps, start=1):
            print(f"  {number}. {step.title}")
        for name, spec in playbook.head.inputs.items():
            print(f"  {name} ({spec.type}) {'required' if spec.is_required else spec.default}")

        (folder / "checks.md").write_text("## Again\n\nSet it to {{ colour }}.\n")
        try:
            load_playbook(folder / "bump.md")
        except ConfigInvalid as invalid:
            print(str(invalid).replace(f"{folder}/", ""))


if __name__ == "__main__":
    main()
