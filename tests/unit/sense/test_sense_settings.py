"""Of all that files say of the loop the stricter holds: a project cannot loosen what its user tightened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from podium.config.configuration import Configuration, load_configuration
from podium.config.trust import TrustBook
from podium.core.work import Mode
from podium.jobs.sense.options import options_in_force, sense_mode


def configured(
    folder: Path,
    *,
    user: dict[str, Any] | None = None,
    project: dict[str, Any] | None = None,
    mode: str = "",
    **environ: str,
) -> Configuration:
    home, root = folder / "home", folder / "root"
    for place in (home, root):
        place.mkdir(exist_ok=True)
    (home / "config.yaml").write_text(yaml.safe_dump(user or {}))
    (root / "podium.yaml").write_text(yaml.safe_dump(project or {}))
    flags = {"mode": mode} if mode else None
    return load_configuration({"PODIUM_HOME": str(home), **environ}, project=root, flags=flags)


def sense(**options: Any) -> dict[str, Any]:
    return {"flows": {"sense": options}}


def test_where_nobody_says_anything_the_loop_only_watches(tmp_path: Path) -> None:
    assert sense_mode(configured(tmp_path), {}) == "sensing"


@pytest.mark.parametrize(
    ("user", "project", "holds"),
    [
        ({"mode": "sensing"}, sense(mode="autonomous"), "sensing"),
        (sense(mode="dry-run"), sense(mode="autonomous"), "dry-run"),
        (sense(mode="autonomous"), {"mode": "supervised"}, "supervised"),
        ({}, sense(mode="supervised"), "supervised"),
        ({"mode": "supervised"}, {}, "supervised"),
    ],
)
def test_of_all_files_the_strictest_mode_holds(
    tmp_path: Path, user: dict[str, Any], project: dict[str, Any], holds: Mode
) -> None:
    assert sense_mode(configured(tmp_path, user=user, project=project), {}) == holds


def test_a_variable_of_podiums_own_lowers_what_a_file_says_of_the_loop(tmp_path: Path) -> None:
    known = configured(tmp_path, project=sense(mode="autonomous"), PODIUM_MODE="sensing")
    assert sense_mode(known, {}) == "sensing"


def test_a_person_at_the_command_line_has_the_last_word(tmp_path: Path) -> None:
    known = configured(tmp_path, user={"mode": "sensing"}, mode="supervised")
    assert sense_mode(known, {}) == "supervised"


@pytest.mark.parametrize(
    ("text", "holds"), [("sensing", "sensing"), ("autonomous", "supervised"), ("loud", "sensing")]
)
def test_the_schedulers_variable_lowers_and_never_raises(
    tmp_path: Path, text: str, holds: Mode
) -> None:
    known = configured(tmp_path, mode="supervised")
    assert sense_mode(known, {"GMX_ORCH_MODE": text}) == holds


def test_a_project_that_nobody_trusts_stays_within_the_zones_that_come_with_podium(
    tmp_path: Path,
) -> None:
    wide = sense(safe_zones=[".", "g/docs/deep", "src"], forbidden_zones=["secret"])
    held = options_in_force(configured(tmp_path, project=wide))
    assert set(held.forbidden_zones) == {"secret", "CLC", "CLS"}
    assert "src" not in held.safe_zones
    assert "." not in held.safe_zones
    assert {"g/docs", "g/docs/deep", "bridge"} <= set(held.safe_zones)


def test_a_trusted_project_names_its_own_zones(tmp_path: Path) -> None:
    known = configured(tmp_path, project=sense(safe_zones=["src"], forbidden_zones=["secret"]))
    TrustBook(known.folders.user_state).trust(known.folders.project_file, known.project_digest)
    held = options_in_force(known)
    assert (held.safe_zones, held.forbidden_zones) == (("src",), ("secret",))


def test_what_a_user_limited_a_project_cannot_lift(tmp_path: Path) -> None:
    user = sense(orders_per_hour=2, safe_zones=["g/docs"], forbidden_zones=["g/docs/mine"])
    project = sense(orders_per_hour=500, safe_zones=["g"], forbidden_zones=["other"])
    held = options_in_force(configured(tmp_path, user=user, project=project))
    assert held.orders_per_hour == 2
    assert held.safe_zones == ("g/docs",)
    assert {"g/docs/mine", "other"} <= set(held.forbidden_zones)
