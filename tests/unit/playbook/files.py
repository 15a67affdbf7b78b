"""A plugin's repository with a profile and a playbook in it, sound until a test changes something."""

from __future__ import annotations

from pathlib import Path

from podium.core.errors import ConfigInvalid
from podium.jobs.playbook.loader import load_playbook, load_profile

PROFILE = """\
# yaml-language-server: $schema=plugin-profile.schema.json
name: Tiny Gallery
kind: wordpress
language: PHP
description: Shows pictures.
repository: https://example.org/tiny-gallery.git
entry_points: [tiny-gallery.php]
version_files: [tiny-gallery.php, readme.txt]
commands:
  test: composer test
  lint: composer lint
compatibility:
  wordpress: ["6.4", "6.5"]
  php: ["8.1"]
conventions:
  - Keep the changelog in readme.txt.
forbidden_paths: [vendor/**]
allowed_tools: [read_file, search_text, edit_file, run_command]
allowed_tiers: [T0, T1]
secrets:
  WP_TOKEN: secret://WP_TOKEN
"""

PLAYBOOK = """\
---
name: bump-compatibility
description: Raise the version that the plugin was tested with.
inputs:
  version: {description: The version of WordPress.}
  notes: {type: text, default: "none"}
  strict: {type: boolean, default: true}
allowed_tools: [read_file, edit_file]
limits: {turns: 20, tool_calls: 60, tokens: 50000, usd: 0.5, minutes: 10}
success: ["@test", "php -l tiny-gallery.php"]
---
# Bump to {{ version }}

Change nothing else. <!-- for maintainers:
# not a step -->

## Find it

Look for `Tested up to: {{ version }}`; strictly: {{ strict }}; see {{ notes }}.

```sh
# no heading
grep "{{ version }}" readme.txt
```

### Where

In \\{{ braces }}.

## Change it

Set it to {{ version }}.
"""


def write(folder: Path, profile: str = PROFILE, playbook: str = PLAYBOOK) -> Path:
    """The playbook's path."""
    (folder / "plugin-profile.yaml").write_text(profile)
    (folder / "bump.md").write_text(playbook)
    return folder / "bump.md"


def faults_of(path: Path) -> list[str]:
    """Return the problems of a profile or a playbook, without the folder; none when it is sound."""
    try:
        load_playbook(path) if path.suffix == ".md" else load_profile(path)
    except ConfigInvalid as invalid:
        return str(invalid).replace(f"{path.parent}/", "").splitlines()
    return []
