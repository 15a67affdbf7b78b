"""Command group `podium bench`; each benchmark is imported on first use."""

from __future__ import annotations

from functools import partial

import typer

from podium.cli.app import command_app
from podium.core.job import all_jobs, load


def _load(path: str) -> object:
    return typer.main.get_command(load(path))


_BENCHES = {"contract": "podium.cli.commands.bench_contract:app"} | {
    name: path for job in all_jobs() for name, path in job.benches.items()
}

app = command_app(group=True, later={name: partial(_load, path) for name, path in _BENCHES.items()})


@app.callback()
def bench() -> None:
    """Run benchmarks on this machine."""
