"""A remote that is reached by https: git's own server program behind TLS on loopback, which wants a login."""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest


@dataclass
class HttpsRemote:
    """Address of the remote, and the `Authorization` headers of its requests."""

    host: str
    certificate: Path
    wanted: str
    """The one `Authorization` that is let in."""
    authorizations: list[list[str]] = field(default_factory=list)


@contextmanager
def serving_git(folder: Path, bare: Path, wanted: str) -> Iterator[HttpsRemote]:
    """Serve the bare repository as `octo/hello.git`."""
    certificate, key = _certificate(folder)
    (folder / "served/octo").mkdir(parents=True)
    (folder / "served/octo/hello.git").symlink_to(bare)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    remote = HttpsRemote("", certificate, wanted)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(remote, folder / "served"))
    server.daemon_threads = True
    server.socket = context.wrap_socket(server.socket, server_side=True)
    remote.host = f"127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield remote
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _certificate(folder: Path) -> tuple[Path, Path]:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed, so there is no certificate to serve with")
    certificate, key = folder / "served.pem", folder / "served.key"
    words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1"
    subject = ["-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-out", str(certificate), "-keyout", str(key)]
    subprocess.run(["openssl", *words.split(), *subject, *files], check=True, capture_output=True)
    return certificate, key


def _handler(remote: HttpsRemote, root: Path) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._serve()

        def do_POST(self) -> None:
            self._serve()

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            came = self.headers.get_all("Authorization") or []
            remote.authorizations.append(came)
            if came != [remote.wanted]:
                self.send_response(401)
                self.send_header("WWW-Authenticate", 'Basic realm="git"')
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            head, _, rest = self._answered(body).partition(b"\r\n\r\n")
            self.send_response(200)
            for line in head.decode().splitlines():
                self.send_header(*line.split(": ", 1))
            self.send_header("Content-Length", str(len(rest)))
            self.end_headers()
            self.wfile.write(rest)

        def _answered(self, body: bytes) -> bytes:
            parts = urlsplit(self.path)
            asked = {
                "GIT_PROJECT_ROOT": str(root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "PATH_INFO": parts.path,
                "QUERY_STRING": parts.query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "REMOTE_USER": "uma",
                "PATH": os.environ["PATH"],
                "HOME": os.environ["HOME"],
            }
            words = ["git", "-c", "safe.directory=*", "http-backend"]
            return subprocess.run(
                words, input=body, env=asked, capture_output=True, check=True
            ).stdout

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler
