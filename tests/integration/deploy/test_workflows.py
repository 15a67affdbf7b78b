"""The workflows on GitHub and its issue forms: read by their schemas, and held against the project."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema.validators import validator_for

from tests.integration.deploy.deploy_harness import ROOT

GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))


def load(path: Path) -> dict[str, Any]:
    # `on` is a key here, and true in YAML 1.1.
    document: dict[Any, Any] = yaml.safe_load(path.read_text())
    return {"on" if key is True else key: value for key, value in document.items()}


def jobs() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in WORKFLOWS:
        for name, job in load(path)["jobs"].items():
            yield f"{path.stem}/{name}", job


def steps() -> list[dict[str, Any]]:
    return [step for _, job in jobs() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
@pytest.mark.parametrize(
    "schema_name", ["vendor.github-workflows", "custom.github-workflows-require-timeout"]
)
def test_workflow_keeps_to_the_schema_and_every_job_has_a_timeout(
    path: Path, schema_name: str
) -> None:
    schemas = pytest.importorskip(
        "check_jsonschema.builtin_schemas",
        reason="check-jsonschema is not installed: pip install check-jsonschema",
    )
    schema = schemas.get_builtin_schema(schema_name)
    errors = validator_for(schema)(schema).iter_errors(load(path))
    assert [error.message for error in errors] == []


def test_actions_are_pinned_by_major_version() -> None:
    used = [step["uses"] for step in steps() if "uses" in step]
    assert used
    assert [name for name in used if not re.search(r"@(release/)?v\d+$", name)] == []


def test_make_targets_of_the_workflows_exist() -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    named = [name for step in steps() for name in re.findall(r"^make (\w+)", step.get("run", ""))]
    assert set(named) == {"unit", "dist"}
    assert set(named) <= set(targets)


def test_checks_run_on_every_python_that_the_package_names() -> None:
    checks = load(GITHUB / "workflows" / "checks.yml")["jobs"]
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    named = {c.rpartition(" ")[2] for c in classifiers if "Python :: 3." in c}
    assert {"3.11", *checks["unit"]["strategy"]["matrix"]["python"]} == named
    assert ".ci/run" in [step.get("run") for step in checks["all"]["steps"]]


def test_only_the_job_that_publishes_may_sign_in_to_the_index_and_it_runs_no_code_of_ours() -> None:
    allowed = [name for name, job in jobs() if "id-token" in job.get("permissions", {})]
    assert allowed == ["release/publish"]
    (publish,) = (job for name, job in jobs() if name == "release/publish")
    assert publish["environment"] == "pypi"
    assert [step for step in publish["steps"] if "run" in step] == []
    assert all(load(path)["permissions"] == {"contents": "read"} for path in WORKFLOWS)


@pytest.mark.parametrize("name", ["bug", "feature"])
def test_issue_form_has_what_github_asks_for(name: str) -> None:
    form = load(GITHUB / "ISSUE_TEMPLATE" / f"{name}.yml")
    assert form["name"]
    assert form["description"]
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert len({field["id"] for field in fields}) == len(fields)
    assert all(field["attributes"]["label"] for field in fields)
