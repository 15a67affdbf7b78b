"""Options of flows: complete by their defaults, faults at their file, line and key."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.app.flow_registry import flow_builders
from podium.config.configuration import Configuration, load_configuration
from podium.config.flow_options import options_models
from podium.core.errors import BadInput, ConfigInvalid
from podium.jobs.rehearsal.flow import rehearsal_plan


def configured(folder: Path, text: str) -> Configuration:
    (folder / "podium.yaml").write_text(text)
    return load_configuration({"PODIUM_HOME": str(folder / "home")}, project=folder)


def test_every_flow_says_what_its_options_are() -> None:
    of_sense = {"candidate", "work_order"}  # told under `flows: sense:`, whose work they go on with
    of_pipeline = {"batch"}  # several runs of it, with its options
    of_nobody = {"call", "delivery"}  # which say all of themselves
    others = of_sense | of_pipeline | of_nobody
    assert options_models().keys() == flow_builders().keys() - others


def test_every_fault_in_a_plan_is_named_with_file_line_and_key(tmp_path: Path) -> None:
    configuration = configured(
        tmp_path,
        "flows:\n"
        "  rehearsal:\n"
        "    most_turns: '3'\n"
        "    scenes:\n"
        "      - {name: one, role: tester}\n"
        "      - {name: '', role: tester, prompt: go}\n"
        "    sceens: []\n",
    )
    with pytest.raises(ConfigInvalid) as raised:
        rehearsal_plan(configuration)
    assert raised.value.file.endswith("podium.yaml")
    assert [(fault.line, fault.key) for fault in raised.value.problems] == [
        (3, "flows.rehearsal.most_turns"),
        (5, "flows.rehearsal.scenes[0].prompt"),
        (6, "flows.rehearsal.scenes[1].name"),
        (7, "flows.rehearsal.sceens"),
    ]
    assert "unknown key 'sceens'" in str(raised.value)


def test_a_plan_is_taken_from_the_file_with_its_defaults(tmp_path: Path) -> None:
    scenes = "[{name: one, role: tester, prompt: go}]"
    plan = rehearsal_plan(configured(tmp_path, f"flows: {{rehearsal: {{scenes: {scenes}}}}}\n"))
    assert [scene.name for scene in plan.scenes] == ["one"]
    assert (plan.most_turns, plan.workspace) == (10, str(tmp_path))


@pytest.mark.parametrize("text", ["", "flows: {rehearsal: {scenes: []}}\n"])
def test_without_scenes_it_says_where_to_list_them(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadInput, match="flows: rehearsal: scenes:"):
        rehearsal_plan(configured(tmp_path, text))
