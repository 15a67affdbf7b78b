"""Exports of packages that load their module on first use."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from podium.platform.lazy_exports import export_lazily


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    folder = tmp_path / "lazily_exporting"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "greet.py").write_text("def greet(): return 'hello'\nNAME = 'ann'\n")
    (folder / "other.py").write_text("from lazily_exporting.greet import NAME\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    importlib.import_module(folder.name)
    export_lazily(folder.name, {"greet": "greet", "NAME": "greet"})
    return folder.name


def test_module_is_loaded_with_the_first_use_of_its_export(package: str) -> None:
    assert f"{package}.greet" not in sys.modules
    assert importlib.import_module(package).NAME == "ann"
    assert f"{package}.greet" in sys.modules


def test_export_wins_over_a_module_of_the_same_name_loaded_before(package: str) -> None:
    other = importlib.import_module(f"{package}.other")
    assert not isinstance(importlib.import_module(package).greet, ModuleType)
    assert importlib.import_module(package).greet() == "hello"
    assert importlib.import_module(package).other is other


def test_unknown_name_is_an_attribute_error(package: str) -> None:
    with pytest.raises(AttributeError, match="no attribute 'farewell'"):
        _ = importlib.import_module(package).farewell


@pytest.mark.parametrize("package", ["podium.agents", "podium.jobs.operator", "podium.store"])
def test_every_export_of_podium_is_there_in_a_fresh_process(package: str) -> None:
    code = (
        f"import {package} as package; from types import ModuleType; loaded = dict(vars(package));"
        "assert not set(package.__all__) & set(loaded), 'loaded too early';"
        "assert not [n for n in package.__all__ if isinstance(getattr(package, n), ModuleType)]"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
