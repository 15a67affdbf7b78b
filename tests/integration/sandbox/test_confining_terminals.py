"""A tree may have new terminals, and none of those that are there."""

from __future__ import annotations

import os

from podium.sandbox import ProcessLauncher
from tests.integration.sandbox.confined import Place, achieved

OTHER_END = 0x5441

TALK = """
import fcntl, os, sys
master, slave = os.openpty()
os.set_inheritable(slave, True)
pid = os.fork()
if pid == 0:
    os.login_tty(slave)
    os.execvp("sh", ["sh", "-c", "read word; echo got $word > /dev/tty"])
os.close(slave)
os.write(master, b"it\\n")
said = b""
try:
    while piece := os.read(master, 100):
        said += piece
except OSError:
    pass
print(said.decode().split()[-2:], os.waitpid(pid, 0)[1])
"""


async def test_a_new_terminal_is_talked_through(launcher: ProcessLauncher, place: Place) -> None:
    ended = await launcher.run(place.python(TALK))
    assert ended.stdout == b"['got', 'it'] 0\n", ended.stderr.decode()


async def test_terminals_of_the_user_cannot_be_opened(
    launcher: ProcessLauncher, place: Place
) -> None:
    master, slave = os.openpty()
    code = f"""
import fcntl
names = [sys.argv[3], "/proc/{os.getpid()}/fd/{slave}", "/proc/{os.getpid()}/fd/{master}", "/dev/tty", "/dev/console"]
for name in names:
    attempt(name, lambda: os.open(name, os.O_RDONLY | os.O_NOCTTY))
    attempt(name, lambda: os.open(name, os.O_WRONLY | os.O_NOCTTY))
"""
    try:
        assert achieved(await launcher.run(place.attempts(code, os.ttyname(slave)))) == []
    finally:
        os.close(master)
        os.close(slave)


async def test_only_an_end_of_a_terminal_has_another(
    launcher: ProcessLauncher, place: Place
) -> None:
    code = f"""
import fcntl, pty
master, slave = os.openpty()
for name, descriptor in (("pipe", os.pipe()[0]), ("null", os.open("/dev/null", 2)), ("slave", slave), ("none", 999)):
    attempt(name, lambda: fcntl.ioctl(descriptor, {OTHER_END}, os.O_RDWR))
again = fcntl.ioctl(master, {OTHER_END}, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
assert os.ttyname(again) == os.ttyname(slave)
assert not os.get_inheritable(again)
"""
    assert achieved(await launcher.run(place.attempts(code))) == []
