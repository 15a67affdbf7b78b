"""Run the commands that a new user would try first, with an installed Podium: `python smoke.py PODIUM VERSION`.

It needs nothing but Python, so that it also runs where only Podium is installed. The first problem ends it with 1.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.request import urlopen

MAX_SECONDS = 600
"""For one command. The demo takes minutes on a loaded machine."""

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "smoke test", "version": "1"},
    },
}


class Failure(Exception):
    """A command did not do what it should."""


def main(program: str, version: str) -> int:
    title = f"Python {sys.version.split()[0]}"
    try:
        for name, check in CHECKS.items():
            check(program, version)
            print(f"{title}: podium {name}: ok", flush=True)
    except (Failure, subprocess.SubprocessError) as problem:
        print(f"{title}: {problem}", file=sys.stderr)
        return 1
    return 0


def check_version(program: str, version: str) -> None:
    expect(f"podium {version}\n", run(program, "--version"))


def check_doctor(program: str, _: str) -> None:
    """Everything but the agents is usable, or there is advice; nothing crashed."""
    report = json.loads(run(program, "doctor", "--json", codes=(0, 1)))
    failed = {check["name"] for check in report["checks"] if check["state"] == "fail"}
    if failed - {"agents"}:
        raise Failure(f"podium doctor: {sorted(failed)} failed: {report}")


def check_demo(program: str, _: str) -> None:
    expect("; delivered in ", run(program, "demo"))


def check_help(program: str, _: str) -> None:
    expect("podium run", run(program, "help", "pipeline"))


def check_ask(program: str, _: str) -> None:
    expect("inbox.list: completed", run(program, "ask", "what is waiting for me"))


def check_serve(program: str, _: str) -> None:
    """The console answers on loopback, and ends when it is told to."""
    with started(program, "serve", "--port", "0", "--json") as server:
        line = server.stdout.readline() if server.stdout else ""
        if not line:
            raise Failure(f"podium serve did not start: {server.communicate()[1]}")
        with urlopen(f"{json.loads(line)['url']}/login", timeout=60) as response:  # noqa: S310 - our own, on loopback
            expect("Podium", response.read().decode())
        server.send_signal(signal.SIGTERM)
        code = server.wait(timeout=60)
    if code not in (0, 130):
        raise Failure(f"podium serve ended with {code}")


def check_mcp(program: str, _: str) -> None:
    with started(program, "mcp") as server:
        out, error = server.communicate(json.dumps(INITIALIZE) + "\n", timeout=60)
    if server.returncode or not out:
        raise Failure(f"podium mcp ended with {server.returncode}: {error}")
    expect("podium", json.loads(out.splitlines()[0])["result"]["serverInfo"]["name"])


CHECKS = {
    "--version": check_version,
    "doctor": check_doctor,
    "demo": check_demo,
    "help": check_help,
    "ask": check_ask,
    "serve": check_serve,
    "mcp": check_mcp,
}


def run(program: str, *arguments: str, codes: tuple[int, ...] = (0,)) -> str:
    """Run a command to its end and return its output. Raises `Failure` with its last lines if it fails."""
    done = subprocess.run(
        [program, *arguments],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=MAX_SECONDS,
        check=False,
    )
    if done.returncode not in codes:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        raise Failure(f"`podium {' '.join(arguments)}` ended with {done.returncode}:\n{tail}")
    return done.stdout


@contextmanager
def started(program: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [program, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def expect(part: str, text: str) -> None:
    if part not in text:
        raise Failure(f"{part!r} is not in what was printed:\n{text[-2000:]}")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
