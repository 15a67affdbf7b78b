"""The Kubernetes example: valid by Kubernetes' own schemas, confined, and never without a worker."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from podium.config.configuration import ENVIRONMENT_VARIABLES
from tests.integration.deploy.deploy_harness import DEPLOY, podium_words
from tests.integration.deploy.test_containers import COMPOSE, WORKERS
from tests.integration.deploy.test_systemd import unit

OBJECTS: list[dict[str, Any]] = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))


def named(kind: str) -> dict[str, Any]:
    (found,) = (item for item in OBJECTS if item["kind"] == kind)
    return found


def pods() -> list[dict[str, Any]]:
    return [named(kind)["spec"]["template"]["spec"] for kind in ("Job", "Deployment")]


def containers() -> list[dict[str, Any]]:
    return [item for pod in pods() for item in (*pod.get("initContainers", ()), *pod["containers"])]


@pytest.mark.soak
def test_every_object_keeps_to_kubernetes_own_schema() -> None:
    validate = pytest.importorskip(
        "kubernetes_validate", reason="`make soak` installs kubernetes-validate"
    )
    faults = []
    for item in OBJECTS:
        try:
            validate.validate(item, validate.latest_version(), strict=True)
        except validate.ValidationError as fault:
            faults.append(f"{item['kind']}: {fault}")
    assert faults == []


def test_every_container_is_without_rights() -> None:
    for pod in pods():
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["automountServiceAccountToken"] is False
    for container in containers():
        context = container["securityContext"]
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}


def test_every_container_of_a_version_is_of_the_same_image() -> None:
    images = {container["image"] for container in containers()}
    assert len(images) == 1
    assert not images.pop().endswith(":latest")


def test_secrets_are_named_and_never_written_out() -> None:
    urls = [
        entry
        for container in containers()
        for entry in container.get("env", ())
        if entry["name"] == "PODIUM_DATABASE_URL"
    ]
    assert len(urls) == 3
    assert all("secretKeyRef" in entry["valueFrom"] for entry in urls)
    owners = [entry["valueFrom"]["secretKeyRef"]["name"] for entry in urls]
    assert owners == ["podium-owner", "podium-worker", "podium-worker"]


def test_what_the_containers_start_are_commands_of_podium() -> None:
    for container in containers():
        if "args" in container:
            podium_words(container["args"])
    (worker,) = pods()[1]["containers"]
    program, *words = worker["readinessProbe"]["exec"]["command"]
    assert program == "podium"
    podium_words(words)


def test_a_budget_covers_the_workers() -> None:
    labels = named("Deployment")["spec"]["template"]["metadata"]["labels"]
    assert named("Deployment")["spec"]["replicas"] == 2
    assert named("PodDisruptionBudget")["spec"]["selector"]["matchLabels"] == labels
    assert named("PodDisruptionBudget")["spec"]["maxUnavailable"] == 1


def test_a_worker_has_as_long_to_end_whatever_it_was_started_by() -> None:
    # Longer than a write waits for a database that is away.
    seconds = pods()[1]["terminationGracePeriodSeconds"]
    assert seconds == 90
    assert unit()["TimeoutStopSec"] == [str(seconds)]
    services = COMPOSE["services"]
    assert {services[name]["stop_grace_period"] for name in WORKERS} == {f"{seconds}s"}


def test_every_variable_that_is_set_means_something_to_podium() -> None:
    in_unit = {word.partition("=")[0] for word in unit()["Environment"][0].split()}
    in_pods = {entry["name"] for container in containers() for entry in container.get("env", ())}
    in_compose = {name for worker in WORKERS for name in COMPOSE["services"][worker]["environment"]}
    named_so = {name for name in in_unit | in_pods | in_compose if name.startswith("PODIUM_")}
    assert named_so <= ENVIRONMENT_VARIABLES
