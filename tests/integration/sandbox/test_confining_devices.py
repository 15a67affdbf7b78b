"""The machine's devices work inside, and stay as they are even for root, to whom they belong."""

from __future__ import annotations

from podium.sandbox import ProcessLauncher
from tests.integration.sandbox.confined import Place, achieved


async def test_devices_are_read_and_written(launcher: ProcessLauncher, place: Place) -> None:
    script = (
        "echo x > /dev/null; echo x >> /dev/null; head -c 3 /dev/zero | wc -c; "
        "head -c 4 /dev/urandom | wc -c; echo x > /dev/full || echo full"
    )
    ended = await launcher.run(place.sh(f"({script}) 2>/dev/null"))
    assert ended.stdout.split() == [b"3", b"4", b"full"]


async def test_their_modes_and_owners_cannot_be_changed(
    launcher: ProcessLauncher, place: Place
) -> None:
    # To what they are already: this would go through as any other change would.
    code = """
for name in ("null", "zero", "full", "random", "urandom", "tty"):
    path = "/dev/" + name
    about = os.stat(path)
    attempt("mode of " + name, lambda: os.chmod(path, about.st_mode & 0o7777))
    attempt("owner of " + name, lambda: os.chown(path, about.st_uid, about.st_gid))
    attempt("times of " + name, lambda: os.utime(path, (1, 1)))
"""
    assert achieved(await launcher.run(place.attempts(code))) == []
