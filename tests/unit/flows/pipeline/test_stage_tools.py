"""Tools by what a stage is for."""

from __future__ import annotations

from typing import get_args

from podium.agents.turn_step import RoleAgent
from podium.jobs.pipeline.spec import Does
from podium.jobs.pipeline.state import with_tools_for
from podium.testing import FakeAgent
from podium.tools import builtin_tools

CHANGING = {"write_file", "edit_file", "apply_patch", "git_commit", "restore_file", "restore_files"}


def test_judges_get_no_tools_that_change_files_and_writers_of_documents_few() -> None:
    role_agent = RoleAgent("anybody", FakeAgent())
    given = {does: with_tools_for(role_agent, does).allowed_tools for does in get_args(Does)}
    assert CHANGING.isdisjoint(given["review"] or ())
    assert "run_command" in (given["review"] or ()), "a judge may run the tests"
    for does in ("audit", "report", "plan"):
        assert CHANGING & set(given[does] or ()) == {"write_file", "edit_file"}
    assert [given[does] for does in ("work", "integrate", "edit")] == [None, None, None]
    known = {tool.spec.name for tool in builtin_tools()}
    assert all(set(tools) <= known for tools in given.values() if tools is not None)


def test_tools_the_settings_name_for_a_role_are_kept() -> None:
    role_agent = RoleAgent("reviewer", FakeAgent(), allowed_tools=("write_file",))
    assert with_tools_for(role_agent, "review").allowed_tools == ("write_file",)
