"""GitHub's own description of its API, which `scripts/github-description` fetched; tests skip without it."""

from __future__ import annotations

import copy
import json
import re
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from jsonschema import Draft202012Validator

_SCRIPT = Path(__file__).parents[3] / "scripts/github-description"


def load() -> None:
    """Read it once, before a test has a home of its own. Skips the test where it is not there."""
    for name in ("description.json", "recorded.json"):
        _read(name)


def example(name: str) -> Any:
    """An answer from the description, put right where GitHub's own examples lag behind its schemas."""
    value = copy.deepcopy(_description()["components"]["examples"][name]["value"])
    for item in value if isinstance(value, list) else [value]:
        if "requested_teams" in item:
            item["requested_teams"] = []
    return value


def recorded(status: int, *, reviews: bool = False) -> Any:
    """An answer about branch protection that GitHub gave, with or without required reviews."""
    for exchange in _read("recorded.json"):
        answer = exchange["response"]
        if exchange["status"] == status and ("required_pull_request_reviews" in answer) == reviews:
            # Teams have had a field more since this was recorded.
            return {key: value for key, value in answer.items() if key != "restrictions"}
    raise AssertionError(f"nothing was recorded with status {status}")


def faults_of_request(method: str, target: str, body: Any) -> list[str]:
    """Return the parts of a request that do not match the description."""
    operation, _ = _operation(method, target)
    if operation is None:
        return [f"there is no {method} {target}"]
    known = {item["name"]: item["schema"] for item in map(_resolved, operation["parameters"])}
    faults = []
    for name, value in parse_qsl(urlsplit(target).query):
        typed = int(value) if known.get(name, {}).get("type") == "integer" else value
        faults += [f"unknown parameter {name}"] if name not in known else []
        faults += _faults(known.get(name, {}), typed)
    if "requestBody" in operation:
        faults += _faults(operation["requestBody"]["content"]["application/json"]["schema"], body)
    return faults


def faults_of_answer(method: str, target: str, status: int, body: Any) -> list[str]:
    """Return the parts of a response that do not match. Statuses that are not described have the shape of every error."""
    operation, _ = _operation(method, target)
    assert operation is not None
    described = _resolved(operation["responses"].get(str(status), {}))
    content = described.get("content", {}).get("application/json")
    error = {"$ref": "#/components/schemas/basic-error"}
    return _faults(content["schema"] if content else error, body)


def path_of(target: str) -> tuple[str, Mapping[str, str]]:
    """The described path that a request is for, and its parts."""
    for path in _description()["paths"]:
        pattern = re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", path)
        if found := re.fullmatch(pattern, urlsplit(target).path):
            return path, {name: unquote(value) for name, value in found.groupdict().items()}
    return "", {}


def _operation(method: str, target: str) -> tuple[Any, Mapping[str, str]]:
    path, parts = path_of(target)
    return _description()["paths"].get(path, {}).get(method.lower()), parts


def _faults(schema: Any, value: Any) -> list[str]:
    whole = {"allOf": [_as_json_schema(schema)], "components": {"schemas": _schemas()}}
    return [
        f"{error.json_path}: {error.message}"
        for error in Draft202012Validator(whole).iter_errors(value)
    ]


@cache
def _schemas() -> Any:
    return _as_json_schema(_description()["components"]["schemas"])


def _as_json_schema(value: Any) -> Any:
    """OpenAPI 3.0 says `nullable` where JSON Schema has a type for it."""
    if isinstance(value, list):
        return [_as_json_schema(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {key: _as_json_schema(item) for key, item in value.items() if key != "example"}
    if value.get("nullable") is True:
        return {"anyOf": [kept, {"type": "null"}]}
    return kept


def _resolved(value: Any) -> Any:
    if "$ref" not in value:
        return value
    _, _, kind, name = value["$ref"].split("/")
    return _description()["components"][kind][name]


def _description() -> Any:
    return _read("description.json")


@cache
def _read(name: str) -> Any:
    where = subprocess.run(
        ["sh", str(_SCRIPT), "--where"], capture_output=True, text=True, check=True
    )
    folder = Path(where.stdout.strip())
    try:
        return json.loads((folder / name).read_text())
    except OSError:
        failed = folder.with_name(f"{folder.name}.failed")
        why = failed.read_text().strip() if failed.exists() else f"run `sh scripts/{_SCRIPT.name}`"
        pytest.skip(f"GitHub's description of its API is not here: {why}")
