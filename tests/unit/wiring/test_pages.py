"""The settings on the page are real and complete."""

from __future__ import annotations

import re
from pathlib import Path

from podium.app.app import Podium
from podium.config.configuration import load_configuration

DOCS = Path(__file__).parents[3] / "docs"


def blocks(page: str, language: str) -> list[str]:
    text = (DOCS / page).read_text()
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def test_the_settings_on_the_page_are_valid_and_show_every_key(tmp_path: Path) -> None:
    (text,) = blocks("configuration.md", "yaml")
    (tmp_path / "podium.yaml").write_text(text)
    environ = {"PODIUM_HOME": str(tmp_path / "home")}
    configuration = load_configuration(environ, project=tmp_path)
    assert Podium(configuration, environ).gate is not None
    shown = set(configuration.layers[0].located.data)
    assert shown == {*type(configuration.settings).model_fields, "policy"} - {"user"}
