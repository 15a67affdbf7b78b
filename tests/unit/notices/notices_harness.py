"""Servers on loopback that are told, and a Podium with something to tell."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from podium.app.app import Podium
from podium.config.configuration import load_configuration
from podium.core.decisions import Approval, Tier
from podium.core.events import ApprovalRequested, RunSucceeded
from podium.core.model import Json
from podium.core.work import Run, RunStatus
from podium.ports import Clock, Ids, Store, Transaction


class Listener:
    """Posts that a service received. `statuses` are given to the next posts, then all are accepted."""

    def __init__(self) -> None:
        self.port = 0
        self.statuses: list[int] = []
        self.bodies: list[dict[str, Json]] = []
        """Of posts that were taken."""
        self.tries = 0
        self.held = threading.Event()
        """While not set, posts are not answered."""
        self.held.set()

    @property
    def url(self) -> str:
        return f"json://127.0.0.1:{self.port}/a-token"


@contextmanager
def listening() -> Iterator[Listener]:
    listener = Listener()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            listener.tries += 1
            listener.held.wait(120)
            status = listener.statuses.pop(0) if listener.statuses else 200
            if status == 200:
                listener.bodies.append(json.loads(body))
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listener.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield listener
    finally:
        listener.held.set()
        server.shutdown()
        thread.join()
        server.server_close()


async def add_run(
    store: Store, clock: Clock, ids: Ids, *, flow: str = "demo", task: str = "a task", **more: Json
) -> Run:
    run = Run(
        id=ids.new("run"),
        flow=flow,
        task=task,
        created_at=clock.now(),
        **{"status": RunStatus.WAITING, **more},
    )
    await store.write(lambda tx: tx.add_run(run))
    return run


async def ask(
    store: Store,
    clock: Clock,
    ids: Ids,
    run: Run,
    *,
    summary: str = "write a.txt",
    tier: Tier = Tier.T2,
) -> Approval:
    """A question to a person, as the gate asks it."""
    approval = Approval(
        id=ids.new("apr"),
        run_id=run.id,
        call_key=f"{run.id}:act:0",
        digest="sha256:x",
        tool="write_file",
        summary=summary,
        tier=tier,
        requested_at=clock.now(),
        deadline=clock.now() + timedelta(hours=1),
    )

    def work(tx: Transaction) -> None:
        tx.save_approval(approval)
        body = ApprovalRequested(
            approval_id=approval.id,
            call=approval.call_key,
            tool=approval.tool,
            summary=summary,
            digest=approval.digest,
            tier=tier.name,
            deadline=approval.deadline,
        )
        tx.append(run.id, body)

    await store.write(work)
    return approval


async def end(store: Store, run: Run) -> None:
    def work(tx: Transaction) -> None:
        tx.save_run(run.model_copy(update={"status": RunStatus.SUCCEEDED}))
        tx.append(run.id, RunSucceeded())

    await store.write(work)


def podium_in(
    folder: Path, *, user: str = "", project: str = "", messages: list[str], **environ: str
) -> Podium:
    """One whose own file and project's file hold this. `said` gets what it tells unasked."""
    root, home = folder / "project", folder / "home"
    for item, name, text in ((root, "podium.yaml", project), (home, "config.yaml", user)):
        item.mkdir(exist_ok=True)
        (item / name).write_text(text)
    given = {"PATH": "/usr/bin:/bin", "HOME": str(home), "PODIUM_HOME": str(home), **environ}
    return Podium(load_configuration(given, project=root), given, notify=messages.append)
