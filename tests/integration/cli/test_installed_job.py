"""A job of another package, found by its entry point, is a job like Podium's own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.integration.cli.command_runner import CommandRunner

EXAMPLE = Path(__file__).parents[3] / "examples/greeting_job"


def test_job_of_an_installed_package_has_command_options_and_durable_runs(
    cli: CommandRunner, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    metadata = site / "podium_greeting_job-0.1.0.dist-info"
    metadata.mkdir(parents=True)
    (site / "greeting_job.py").symlink_to(EXAMPLE / "greeting_job.py")
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: podium-greeting-job\nVersion: 0.1.0\n")  # fmt: skip
    (metadata / "entry_points.txt").write_text("[podium.jobs]\ngreeting = greeting_job:JOB\n")
    (cli.project / "podium.yaml").write_text("flows: {greeting: {greeting: Good day}}\n")

    def podium(*arguments: str) -> str:
        done = subprocess.run(
            cli.command(*arguments),
            cwd=cli.project,
            env={**cli.environ, "PYTHONPATH": os.pathsep.join([str(site), *filter(None, [cli.environ.get("PYTHONPATH")])])},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "\n  greet " in podium("--help")
    podium("greet", "Ann", "Bob")
    assert (cli.project / "greetings.txt").read_text() == "Good day, Ann!\nGood day, Bob!\n"
    (line,) = podium("runs").splitlines()[1:]
    assert line.split()[1:3] == ["succeeded", "greeting"]
    assert "greet" in podium("show", line.split()[0])
