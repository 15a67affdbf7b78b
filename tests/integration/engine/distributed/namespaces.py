"""Machines of a test: network namespaces, each joined to the hub by one cable.

The hub is a namespace too, and whoever conducts the test lives in it together with the server: nothing
of this computer's own network is touched. No namespace has a name. Each lasts as long as the process
that holds it, which ends with the one that made it, however that ends.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence

_PROGRAMS = {"ip": "iproute2", "unshare": "util-linux", "nsenter": "util-linux"}
_PROGRAMS["setpriv"] = "util-linux"
"""What is needed → the package that has it."""

_DIES_WITH_ITS_PARENT = ("setpriv", "--pdeathsig", "KILL")


def why_no_namespaces() -> str | None:
    """Why machines cannot be made here. None: they can."""
    if sys.platform != "linux":
        return "network namespaces are there on Linux only"
    for program, package in _PROGRAMS.items():
        if shutil.which(program) is None:
            return f"`{program}` is not on this machine: apt-get install {package}"
    cable = ["ip", "link", "add", "one", "type", "veth", "peer", "name", "other"]
    tried = subprocess.run(["unshare", "--net", *cable], capture_output=True, text=True)
    if tried.returncode:
        return f"network namespaces cannot be made here: {tried.stderr.strip()}"
    return None


def in_a_hub(command: Sequence[str]) -> list[str]:
    """The command in a network of its own with nothing in it, killed when its parent ends."""
    return [*_DIES_WITH_ITS_PARENT, "unshare", "--net", *command]


class Machine:
    """One namespace with one cable to the hub. Made, and cut off, by a process in the hub."""

    def __init__(self, number: int) -> None:
        self.name = f"machine{number}"
        self.hub_address = f"10.219.{number}.1"
        """Where this machine, and no other, finds the hub."""
        self._cable = f"to{number}"
        self._holder = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "echo; exec cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._holder.stdout is not None
        self._holder.stdout.readline()
        self._lay_cable(f"10.219.{number}.2")

    def command(self, command: Sequence[str]) -> list[str]:
        """The command on this machine, killed when its parent ends. Its process is the command's."""
        network = f"--net=/proc/{self._holder.pid}/ns/net"
        return ["nsenter", network, *_DIES_WITH_ITS_PARENT, *command]

    def cut_off(self) -> None:
        """Pull the cable: nothing arrives any more, on neither side, and nobody is told."""
        _run("ip", "link", "set", self._cable, "down")

    def join(self) -> None:
        _run("ip", "link", "set", self._cable, "up")

    def close(self) -> None:
        """End the holder; the namespace and its cable go with the last process in it."""
        self._holder.communicate()

    def _lay_cable(self, address: str) -> None:
        peer = ["peer", "name", "hub", "netns", str(self._holder.pid)]
        _run("ip", "link", "add", self._cable, "type", "veth", *peer)
        _run("ip", "address", "add", f"{self.hub_address}/30", "dev", self._cable)
        self.join()
        inside = ("nsenter", f"--net=/proc/{self._holder.pid}/ns/net", "ip")
        _run(*inside, "address", "add", f"{address}/30", "dev", "hub")
        _run(*inside, "link", "set", "hub", "up")


def bring_up_loopback() -> None:
    """In the hub, once: a new namespace has even that switched off."""
    _run("ip", "link", "set", "lo", "up")


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
