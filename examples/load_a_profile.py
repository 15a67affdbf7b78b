"""Read and check a plugin profile: all problems at once, each with its position."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from podium.core.errors import ConfigInvalid
from podium.library import load_profile

SOUND = """\
name: Tiny Gallery
kind: wordpress
language: PHP
version_files: [readme.txt]
commands: {test: composer test}
compatibility: {php: ["8.1", "8.2"]}
read_only_paths: [tests]
"""

FAULTY = """\
name: Tiny Gallery
kind: wordpress
compatibility: {php: [8.10]}
forbidden_paths: [../elsewhere]
colour: red
"""


def main() -> None:
    with TemporaryDirectory() as made:
        folder = Path(made) / "plugin" / "src"
        folder.mkdir(parents=True)
        file = folder.parent / "plugin-profile.yaml"

        file.write_text(SOUND)
        profile = load_profile(folder)  # the nearest one upwards
        print(f"{profile.name}: {profile.kind}, tested by {profile.commands.test!r}")
        print(f"risk tiers: {', '.join(profile.allowed_tiers)}; digest {profile.digest()[:12]}…")

        file.write_text(FAULTY)
        try:
            load_profile(file)
        except ConfigInvalid as invalid:
            for fault in invalid.problems:
                print(f"line {fault.line}, column {fault.column}: {fault.key}: {fault.problem}")


if __name__ == "__main__":
    main()
