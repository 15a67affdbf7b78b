"""A machine with nothing but the system's own programs and a user without rights, as a namespace.

Its root holds `/usr`, a few files of `/etc`, a new home and the wheels to install from: neither this checkout nor its environment,
no settings of the machine's user and no variables. Packages come from a folder that was filled before.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
UID = 1000
HOME = "/home/user"
ETC = {
    "passwd": f"root:x:0:0::/root:/bin/sh\nuser:x:{UID}:{UID}::{HOME}:/bin/sh\n",
    "group": f"root:x:0:\nuser:x:{UID}:\n",
    "hosts": "127.0.0.1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
OFFLINE = {
    "PIP_NO_INDEX": "1",
    "PIP_FIND_LINKS": "/wheels",
    "UV_OFFLINE": "1",
    "UV_NO_INDEX": "1",
    "UV_FIND_LINKS": "/wheels",
}
"""For whoever installs: `/wheels` is all there is."""

INSTALL = {
    "pip": 'python3 -m venv podium && podium/bin/pip install -q "$0" && mkdir -p .local/bin && ln -sf ~/podium/bin/podium .local/bin/podium',
    "pipx": '~/tools/bin/pipx install -q --force "$0"',
    "uv": '~/tools/bin/uv tool install -q --force --python "$1" "$0"',
}
"""How Podium is installed by each of them: `$0` is the wheel, `$1` the Python."""


@dataclass(frozen=True)
class Packages:
    """A folder of wheels: everything that is installed on bare machines of a session."""

    folder: Path

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)  # the machine's user reads it

    def build(self, source: Path) -> Path:
        """Build the wheel of this source and return its path, in a folder of its own: versions may be equal."""
        folder = self.folder / f"built-{len(list(self.folder.glob('built-*')))}"
        host_pip("wheel", "--no-deps", "--wheel-dir", str(folder), str(source))
        (wheel,) = folder.glob("*.whl")
        return wheel

    def download(self, python: str, *packages: str) -> None:
        """Fetch packages with all that they need, for this Python. A test skips where that cannot be had."""
        wheels = self.folder / "wheels"
        links = ("--find-links", str(wheels)) if wheels.exists() else ()
        try:
            host_pip("--python", python, "download", *links, "--dest", str(wheels), *packages)
        except AssertionError as error:
            pytest.skip(f"packages cannot be had here: {error}")
        for wheel in wheels.glob("podium-*.whl"):
            wheel.unlink()


def host_pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def find_python(version: str) -> str:
    """The path of a Python of this version (`3.12`, or `system`); a test skips where there is none."""
    if version == "system":
        paths = [Path("/usr/bin/python3")]
    else:
        pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
        paths = [Path(f"/usr/bin/python{version}"), Path(f"/usr/local/bin/python{version}")]
        paths += sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}"))
    check = "import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))"
    for path in paths:
        if path.exists() and not subprocess.run([path, "-c", check], check=False).returncode:
            return str(path)
    pytest.skip(f"no Python {version} with venv, at least 3.11, in {', '.join(map(str, paths))}")


@dataclass
class BareMachine:
    """Each `run` is a namespace of its own; home and `/tmp` stay."""

    folder: Path
    packages: Packages
    lacks: Sequence[str] = ()
    """Programs of this machine that are not there."""
    python: str = "/usr/bin/python3"
    variables: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if shutil.which("bwrap") is None:
            pytest.skip("bubblewrap is not installed, which makes the namespace")
        for name in ("etc", "home", "tmp"):
            (self.folder / name).mkdir(parents=True)
        for name, text in ETC.items():
            (self.folder / "etc" / name).write_text(text)
        (self.folder / "etc/ld.so.cache").touch()
        for name in ("ssl", "alternatives"):
            (self.folder / "etc" / name).mkdir()
        if self.as_root:
            os.chown(self.folder / "home", UID, UID)
            os.chown(self.folder / "tmp", UID, UID)

    @property
    def as_root(self) -> bool:
        return os.geteuid() == 0

    def add_tools(self) -> None:
        """Install pipx and uv, apart from Podium."""
        script = "python3 -m venv tools && tools/bin/pip install -q pipx uv"
        self.sh(script, env=OFFLINE)

    def install(self, wheel: Path, installer: str) -> None:
        path = f"/built/{wheel.relative_to(self.packages.folder)}"
        self.run("sh", "-ec", INSTALL[installer], path, self.python, env=OFFLINE)

    def podium(self, *arguments: str, cwd: str = HOME, codes: Sequence[int] = (0,)) -> str:
        return self.run("podium", *arguments, cwd=cwd, codes=codes)

    def sh(self, script: str, env: dict[str, str] | None = None) -> str:
        return self.run("sh", "-ec", script, env=env)

    def run(
        self,
        *argv: str,
        cwd: str = HOME,
        env: dict[str, str] | None = None,
        codes: Sequence[int] = (0,),
    ) -> str:
        """Run a program to its end and return what it printed, errors too."""
        done = subprocess.run(
            [*self._namespace(cwd, {**self.variables, **(env or {})}), *argv],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=1800,
            check=False,
        )
        assert done.returncode in codes, f"{argv} ended with {done.returncode}: {done.stdout}"
        return done.stdout

    def _namespace(self, cwd: str, env: dict[str, str]) -> Iterator[str]:
        # With a /proc of a process namespace that was made before, Podium can make namespaces in this one.
        if self.as_root:
            yield from ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
        yield from ("bwrap", "--die-with-parent", "--unshare-ipc", "--unshare-uts", "--new-session")
        yield from ("--hostname", "bare", "--clearenv", "--dev", "/dev", "--perms", "0755")
        yield from ("--dir", "/home", "--ro-bind", "/usr", "/usr", "--tmpfs", "/usr/local")
        for name in ("bin", "lib", "lib64", "sbin"):
            if Path("/", name).is_symlink():
                yield from ("--symlink", f"usr/{name}", f"/{name}")
            else:
                yield from ("--ro-bind-try", f"/{name}", f"/{name}")
        yield from ("--ro-bind", str(self.folder / "etc"), "/etc")
        for path in ("/etc/ssl", "/etc/alternatives", "/etc/ld.so.cache"):
            yield from ("--ro-bind-try", path, path)
        yield from ("--bind", str(self.folder / "tmp"), "/tmp")
        yield from ("--bind", str(self.folder / "home"), HOME)
        yield from ("--ro-bind", str(self.packages.folder / "wheels"), "/wheels")
        yield from ("--ro-bind", str(self.packages.folder), "/built")
        yield from ("--ro-bind", str(ROOT / "scripts/smoke.py"), "/smoke.py")
        if not self.python.startswith("/usr/bin/"):
            prefix = Path(self.python).parents[1]
            for parent in reversed(prefix.parents[:-1]):
                yield from ("--perms", "0755", "--dir", str(parent))
            yield from ("--ro-bind", str(prefix), str(prefix))
        for name in self.lacks:
            if program := shutil.which(name, path="/usr/bin:/usr/sbin"):
                yield from ("--ro-bind", "/dev/null", str(Path(program).resolve()))
        path = f"{HOME}/.local/bin:/usr/bin:/bin"
        for name, value in {"PATH": path, "HOME": HOME, "LANG": "C.UTF-8", **env}.items():
            yield from ("--setenv", name, value)
        yield from ("--chdir", cwd)
        if self.as_root:
            yield from ("--bind", "/proc", "/proc", "--cap-add", "CAP_SETUID")
            yield from ("--cap-add", "CAP_SETGID", "setpriv", f"--reuid={UID}", f"--regid={UID}")
            yield from ("--clear-groups", "--inh-caps=-all", "--bounding-set=-all")
        else:
            yield from ("--unshare-pid", "--proc", "/proc")
