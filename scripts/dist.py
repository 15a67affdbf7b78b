"""Build wheel and sdist, check both, and try the wheel in a bare environment: `make dist`.

Results are in dist/: the wheel, the sdist and an SBOM (CycloneDX) of what the wheel brings. The first problem ends it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
GOAL_BYTES = 1_500_000
"""Of the wheel, and of the sdist. Code alone is above it today, so more is reported and not refused."""
MAX_BYTES = 3_300_000
"""More than this is refused: something got in that should not have."""
MAX_SECONDS = 1800
"""For one program. The smoke test takes minutes on a loaded machine."""


class Problem(Exception):
    """Error: the build must not be published."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make dist", description=__doc__)
    parser.add_argument("--tag", help="the tag of the release, such as v0.2.0")
    parser.add_argument("--python", action="append", help="try the wheel with it; repeatable")
    options = parser.parse_args(arguments)
    try:
        if options.tag:
            check_tag(options.tag, version(), (ROOT / "CHANGELOG.md").read_text())
        wheel, sdist = build()
        check_files(wheel, sdist)
        for python in options.python or [sys.executable]:
            try_wheel(wheel, python)
    except (Problem, subprocess.SubprocessError) as problem:
        print(f"make dist: {problem}", file=sys.stderr)
        return 1
    return 0


def version() -> str:
    """Podium's version, from the only file that has it."""
    path = ROOT / project()["tool"]["hatch"]["version"]["path"]
    match = re.search(r'^__version__ = "(.+)"$', path.read_text(), re.MULTILINE)
    if match is None:
        raise Problem(f"no __version__ in {path.relative_to(ROOT)}")
    return match[1]


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


# --- build and check ----------------------------------------------------------------------------


def build() -> tuple[Path, Path]:
    """Build the sdist, and the wheel from it. Needs no network."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(DIST), str(ROOT))
    (wheel,) = DIST.glob("*.whl")
    (sdist,) = DIST.glob("*.tar.gz")
    return wheel, sdist


def check_files(wheel: Path, sdist: Path) -> None:
    """Check metadata, contents and size of both."""
    run(sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(sdist))
    tracked = run("git", "-C", str(ROOT), "ls-files").splitlines()
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = [name for name in archive.namelist() if ".dist-info/" not in name]
    with tarfile.open(sdist) as tar:
        in_sdist = [name.partition("/")[2] for name in tar.getnames()]
    for file, names, expected in (
        (wheel, in_wheel, wheel_names(tracked)),
        (sdist, in_sdist, sdist_names(tracked)),
    ):
        check_contents(file.name, set(names), expected)
        check_size(file.name, file.stat().st_size)
        print(f"{file.name}: {file.stat().st_size:,} bytes, {len(names)} files")
    if wheel.stat().st_size > GOAL_BYTES:
        print(f"  more than the goal of {GOAL_BYTES:,}; most of it: {largest_parts(wheel)}")


def wheel_names(tracked: Iterable[str]) -> set[str]:
    """Files that the wheel must hold: the package, and the folders that pyproject.toml puts into it."""
    target = project()["tool"]["hatch"]["build"]["targets"]["wheel"]
    folders = {package: Path(package).name for package in target["packages"]}
    folders |= target["force-include"]
    return {
        folders[folder] + name.removeprefix(folder)
        for name in tracked
        for folder in folders
        if name.startswith(f"{folder}/")
    }


def sdist_names(tracked: Iterable[str]) -> set[str]:
    """Files that the sdist must hold: what pyproject.toml names, and what hatchling adds."""
    included = project()["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    added = {"pyproject.toml", ".gitignore", "PKG-INFO"}
    return added | {
        name
        for name in tracked
        if any(f"/{name}" == path or f"/{name}".startswith(f"{path}/") for path in included)
    }


def check_contents(title: str, names: set[str], expected: set[str]) -> None:
    for kind, difference in (("lacks", expected - names), ("must not hold", names - expected)):
        if difference:
            listed = ", ".join(sorted(difference)[:10])
            raise Problem(f"{title} {kind} {len(difference)} files: {listed}")


def check_size(title: str, size: int) -> None:
    if size > MAX_BYTES:
        raise Problem(f"{title} has {size:,} bytes, more than {MAX_BYTES:,}")


def largest_parts(wheel: Path) -> str:
    """The packages that take most of the wheel, with their bytes in it."""
    parts = Counter[str]()
    with zipfile.ZipFile(wheel) as archive:
        for file in archive.infolist():
            parts["/".join(file.filename.split("/")[:2])] += file.compress_size
    return ", ".join(f"{name} {size:,}" for name, size in parts.most_common(5))


def check_tag(tag: str, expected: str, changelog: str) -> None:
    """Check that the tag names this version and that the changelog has its section, with a date."""
    if tag != f"v{expected}":
        raise Problem(f"tag {tag!r} is not version {expected}; tag it 'v{expected}'")
    if not re.search(
        rf"^## \[{re.escape(expected)}\] - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE
    ):
        raise Problem(f"CHANGELOG.md has no line '## [{expected}] - YYYY-MM-DD'")


# --- smoke test ---------------------------------------------------------------------------------


def try_wheel(wheel: Path, python: str) -> None:
    """Install the wheel with its dependencies outside of the checkout, and run what a new user would."""
    with TemporaryDirectory(prefix="podium-dist-") as folder:
        binaries, work = Path(folder, "venv/bin"), Path(folder, "work")
        work.mkdir()
        run(python, "-m", "venv", "--without-pip", str(binaries.parent))
        own = str(binaries / "python")
        pip = (sys.executable, "-m", "pip", "--python", own, "install", "--quiet")
        run(*pip, "--disable-pip-version-check", str(wheel))
        environ = {
            "PATH": f"{binaries}:{os.environ['PATH']}",
            "HOME": str(Path(folder, "home")),
            "LANG": "C.UTF-8",
        }
        smoke = (str(ROOT / "scripts/smoke.py"), str(binaries / "podium"), version())
        print(run(own, *smoke, cwd=work, env=environ), end="")
        write_sbom(own, wheel.parent / f"podium-{version()}.cdx.json")


def write_sbom(python: str, path: Path) -> None:
    """Write what this Python has installed as CycloneDX; the tool checks it by the schema."""
    tool = (sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible")
    about = ("--pyproject", str(ROOT / "pyproject.toml"), "--output-format", "JSON")
    run(*tool, *about, "--output-file", str(path), python)
    sbom = json.loads(path.read_text())
    sbom["metadata"]["component"]["version"] = version()  # pyproject.toml does not have it
    path.write_text(json.dumps(sbom, indent=2) + "\n")
    names = {re.sub(r"[-_.]+", "-", item["name"]).lower() for item in sbom["components"]}
    direct = {re.split(r"[\[<>=]", text)[0] for text in project()["project"]["dependencies"]}
    if missing := direct - names:
        raise Problem(f"{path.name} lacks {', '.join(sorted(missing))}")
    print(f"{path.name}: {len(names)} packages")


def run(*argv: str, cwd: Path = ROOT, env: dict[str, str] | None = None) -> str:
    """Run a program to its end and return its output. Raises `Problem` with its last lines if it fails."""
    program = shutil.which(argv[0], path=(env or os.environ)["PATH"]) or argv[0]
    done = subprocess.run(
        [program, *argv[1:]],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=MAX_SECONDS,
        check=False,
    )
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        raise Problem(f"`{' '.join(argv)}` ended with {done.returncode}:\n{tail}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
