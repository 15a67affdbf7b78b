"""The examples on the pages of these rooms are real."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from podium.wiring import Podium, load_configuration

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page: str, language: str) -> list[str]:
    text = (DOCS / page).read_text()
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


@pytest.mark.parametrize("page", ["wiring.md", "usecases.md"])
def test_the_programs_run(page: str, tmp_path: Path) -> None:
    (program,) = blocks(page, "python")
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, timeout=60)


def test_the_settings_on_the_page_are_valid_and_show_every_key(tmp_path: Path) -> None:
    (text,) = blocks("configuration.md", "yaml")
    (tmp_path / "podium.yaml").write_text(text)
    environ = {"PODIUM_HOME": str(tmp_path / "home")}
    configuration = load_configuration(environ, project=tmp_path)
    assert Podium(configuration, environ).gate is not None
    shown = set(configuration.layers[0].located.data)
    assert shown == {*type(configuration.settings).model_fields, "policy"} - {"user"}
