"""The page about playbooks shows files that are sound."""

from __future__ import annotations

import re
from pathlib import Path

from podium.jobs.playbook import build_prompt
from podium.jobs.playbook.loader import load_playbook, load_profile
from podium.jobs.playbook.models import PluginProfile
from podium.jobs.playbook.page import MAX_DEPTH, MAX_FILE_BYTES, MAX_PAGES, MAX_WHOLE

PAGE = (Path(__file__).parents[3] / "docs" / "playbook.md").read_text()


def shown(begins: str) -> str:
    (text,) = re.findall(
        rf"^(`{{3,}})text\n({re.escape(begins)}.*?)^\1$", PAGE, re.MULTILINE | re.DOTALL
    )
    return str(text[1])


def test_the_files_on_the_page_make_a_prompt(tmp_path: Path) -> None:
    (tmp_path / "plugin-profile.yaml").write_text(shown("# yaml-language-server"))
    (tmp_path / "bump.md").write_text(shown("---\n"))
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "look-it-over.md").write_text("## Look it over\n")
    playbook = load_playbook(tmp_path / "bump.md")
    assert [step.title for step in playbook.steps] == ["Find the line", "Change it", "Look it over"]
    prompt = build_prompt(load_profile(tmp_path), playbook, {"version": "6.6"})
    assert "Set it to `6.6`." in prompt.text


def test_every_field_of_a_profile_has_its_row() -> None:
    table = PAGE.split("| field |")[1].split("\n\n")[0]
    rows = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == {
        *PluginProfile.model_fields
    }


def test_the_limits_on_the_page_are_those_of_the_code() -> None:
    words = (
        f"more than {MAX_DEPTH} deep",
        f"more than {MAX_PAGES} in all",
        f"{MAX_WHOLE:,} characters",
        f"{MAX_FILE_BYTES // 1000} kB",
    )
    assert [word for word in words if word not in " ".join(PAGE.split())] == []
