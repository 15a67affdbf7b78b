"""Certificates for tests, by the openssl that is there."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from podium.rpc import Certificates


def authority(folder: Path) -> Path:
    """The certificate of a new authority, its key beside it."""
    folder.mkdir(parents=True)
    _openssl(folder, "req", "-x509", *_NEW, "-keyout", "ca.key", "-out", "ca.pem", *_named("ca"))
    return folder / "ca.pem"


def certificates(ca: Path, name: str, trusted: Path | None = None) -> Certificates:
    """Signed by this authority, for the loopback; trusts it too, or another."""
    folder = ca.parent
    _openssl(folder, "req", *_NEW, "-keyout", f"{name}.key", "-out", f"{name}.csr", *_named(name))
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    sign = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "names")
    _openssl(folder, "x509", "-req", "-in", f"{name}.csr", "-out", f"{name}.pem", *sign)
    (folder / f"{name}.key").chmod(0o600)
    return Certificates(
        key=folder / f"{name}.key", certificate=folder / f"{name}.pem", authority=trusted or ca
    )


_NEW = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def _named(name: str) -> tuple[str, str]:
    return ("-subj", f"/CN={name}")


def _openssl(folder: Path, *words: str) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl on this machine, so there are no certificates")
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True, timeout=60)
