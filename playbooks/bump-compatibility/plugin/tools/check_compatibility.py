"""Fails unless manifest, readme, profile and changelog agree on the newest host."""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def main() -> int:
    manifest = tomllib.loads((ROOT / "plugin.toml").read_text())
    newest = manifest["tested_up_to"]
    rows = re.findall(r"^\| (\d[\d.]*) \| yes \|$", (ROOT / "README.md").read_text(), re.M)
    listed = re.search(r"notebox: \[(.*)\]", (ROOT / "plugin-profile.yaml").read_text())
    profile = re.findall(r'"([\d.]+)"', listed.group(1)) if listed else []
    faults = []
    if not rows or rows[0] != newest:
        faults.append(f"README.md: the first row is not {newest}")
    if rows != sorted(rows, key=version, reverse=True):
        faults.append("README.md: the rows are not in order")
    if rows != profile[::-1]:
        faults.append(f"plugin-profile.yaml: it lists {profile}, the readme {rows}")
    if version(newest) <= version("5.1"):
        faults.append("plugin.toml: tested_up_to is no newer than the last release's")
    unreleased = (
        (ROOT / "CHANGELOG.md").read_text().partition("## Unreleased")[2].partition("\n## ")[0]
    )
    if f"Tested with {newest}." not in unreleased:
        faults.append(f"CHANGELOG.md: nothing under Unreleased says that {newest} was tried")
    print("\n".join(faults) or f"all places say {newest}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
