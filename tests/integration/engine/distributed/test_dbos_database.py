"""DBOS features in use, on a real PostgreSQL: claims, limits, recovery, delays, and refusals."""

from __future__ import annotations

import base64
import logging
import os
import pickle
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from podium.core.errors import StoreAway, UserMustAct
from podium.core.work import QueueSpec, Run
from podium.engine.distributed.database import DbosDatabase, check_installed, migrate
from podium.engine.distributed.workflows import asked_for, enqueue, needed_code, run_of, workflow_id
from podium.testing import FixedClock, SteadyIds

CODE = needed_code("make", 1, None)
CLOCK = FixedClock()


class _Named:
    """A connection that takes the statements of the hook."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def execute(self, statement: str, parameters: Mapping[str, Any]) -> None:
        words = statement
        for name in parameters:
            words = words.replace(f":{name}", f"%({name})s")
        self._connection.execute(words, parameters)


class _Asking:
    """A view that takes the questions of workers."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def ask(self, statement: str, **values: Any) -> list[Any]:
        words = statement
        for name in values:
            words = words.replace(f":{name}", f"%({name})s")
        return self._connection.execute(words, values).fetchall()


@pytest.fixture
def url(postgres_url: str) -> str:
    migrate(postgres_url)
    return postgres_url


@pytest.fixture
def database(url: str) -> Iterator[DbosDatabase]:
    database = DbosDatabase(url)
    database.register(QueueSpec(name="work"))
    yield database
    database.close()


_IDS = SteadyIds()


def _asked_for(url: str) -> list[str]:
    """The codes that queued runs need, as a worker sees them."""
    with psycopg.connect(url) as connection:
        return asked_for(_Asking(connection), "work")


def _holders(url: str, workflows: list[str]) -> dict[str, str]:
    """Those of the workflows that are not over, each with the worker that has it, if any."""
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT workflow_uuid, CASE status WHEN 'PENDING' THEN executor_id ELSE '' END "
            "FROM dbos.workflow_status WHERE workflow_uuid = ANY(%s) "
            "AND status IN ('ENQUEUED', 'DELAYED', 'PENDING')",
            (workflows,),
        )
        return dict(rows.fetchall())


def _run(**changes: Any) -> Run:
    made = Run(id=_IDS.new("run"), flow="make", queue="work", created_at=CLOCK.now())
    return made.model_copy(update=changes)


def _queue(url: str, *runs: Run) -> None:
    with psycopg.connect(url) as connection:
        for run in runs:
            enqueue(_Named(connection), run, CLOCK.now())


def test_a_run_is_claimed_once_and_its_place_is_given_back_once_it_is_settled(
    url: str, database: DbosDatabase
) -> None:
    database.register(QueueSpec(name="work", concurrency=1))
    first, second = _run(), _run()
    _queue(url, first, second)
    [claim] = database.claim("work", "worker-1", CODE, 5)
    assert run_of(claim.workflow_id) == (first.id, 0)
    assert database.claim("work", "worker-2", CODE, 5) == []
    database.settle(claim)
    [other] = database.claim("work", "worker-2", CODE, 5)
    assert run_of(other.workflow_id) == (second.id, 0)


def test_a_run_stored_twice_is_one_workflow_and_a_run_queued_again_is_another(
    url: str, database: DbosDatabase
) -> None:
    run = _run()
    _queue(url, run, run)
    assert [claim.workflow_id for claim in database.claim("work", "w", CODE, 9)] == [f"{run.id}:0"]
    again = run.model_copy(update={"fence": 1})
    _queue(url, again)
    assert [claim.workflow_id for claim in database.claim("work", "w", CODE, 9)] == [f"{run.id}:1"]


def test_nothing_is_queued_when_the_transaction_is_rolled_back(
    url: str, database: DbosDatabase
) -> None:
    with psycopg.connect(url) as connection:
        enqueue(_Named(connection), _run(), CLOCK.now())
        connection.rollback()
    assert _asked_for(url) == []


def test_the_higher_priority_goes_first(url: str, database: DbosDatabase) -> None:
    low, high, middle = _run(priority=-5), _run(priority=7), _run()
    _queue(url, low, high, middle)
    claimed = [database.claim("work", "w", CODE, 1)[0].workflow_id for _ in range(3)]
    assert claimed == [workflow_id(run.id, 0) for run in (high, middle, low)]


def test_no_more_is_claimed_than_there_are_places(url: str, database: DbosDatabase) -> None:
    _queue(url, *(_run() for _ in range(5)))
    assert len(database.claim("work", "w", CODE, 3)) == 3
    assert len(database.claim("work", "w", CODE, 3)) == 2


def test_a_rate_holds_over_all_workers(url: str, database: DbosDatabase) -> None:
    database.register(QueueSpec(name="work", rate_limit=2, rate_seconds=600))
    _queue(url, *(_run() for _ in range(4)))
    assert len(database.claim("work", "w1", CODE, 9)) == 2
    assert database.claim("work", "w2", CODE, 9) == []


def test_claims_of_many_workers_at_once_never_exceed_the_limit(url: str) -> None:
    workers = [DbosDatabase(url) for _ in range(4)]
    for worker in workers:
        worker.register(QueueSpec(name="work", concurrency=5))
    _queue(url, *(_run() for _ in range(40)))

    def claim(number: int) -> list[str]:
        database = workers[number % 4]
        return [c.workflow_id for c in database.claim("work", f"w{number % 4}", CODE, 2)]

    with ThreadPoolExecutor(4) as threads:
        claimed = [one for some in threads.map(claim, range(12)) for one in some]
    for worker in workers:
        worker.close()
    assert len(claimed) == len(set(claimed)) <= 5


def test_only_the_code_a_run_needs_is_given_it_and_a_pinned_run_only_to_its_host(
    url: str, database: DbosDatabase
) -> None:
    _queue(url, _run(flow_version=2), _run(pinned_to="here"))
    assert set(_asked_for(url)) == {"make@2", "make@1#here"}
    assert database.claim("work", "w", CODE, 9) == []
    assert len(database.claim("work", "w", "make@2", 9)) == 1
    assert len(database.claim("work", "w", "make@1#here", 9)) == 1


def test_what_a_dead_worker_claimed_is_queued_again_once(url: str, database: DbosDatabase) -> None:
    _queue(url, _run(), _run())
    [lost] = database.claim("work", "dead", CODE, 1)
    [held] = database.claim("work", "alive", CODE, 1)
    assert database.recover("dead") == 1
    assert database.recover("dead") == 0
    [found] = database.claim("work", "alive", CODE, 9)
    assert found.workflow_id == lost.workflow_id
    database.settle(lost)  # the dead one's word does not count any more
    assert _holders(url, [lost.workflow_id, held.workflow_id]) == {
        lost.workflow_id: "alive",
        held.workflow_id: "alive",
    }


def test_a_claim_that_cannot_be_worked_on_is_given_back(url: str, database: DbosDatabase) -> None:
    _queue(url, _run())
    [claim] = database.claim("work", "busy", CODE, 1)
    database.give_back(claim.workflow_id, "somebody else")
    assert database.claim("work", "other", CODE, 1) == []
    database.give_back(claim.workflow_id, "busy")
    assert [item.workflow_id for item in database.claim("work", "other", CODE, 1)] == [
        claim.workflow_id
    ]


def test_a_delayed_run_is_not_handed_out_before_its_time(url: str, database: DbosDatabase) -> None:
    run = _run(not_before=CLOCK.now() + timedelta(hours=1))
    _queue(url, run)
    database.wake_delayed()
    assert _asked_for(url) == []
    assert _holders(url, [workflow_id(run.id, 0)]) == {workflow_id(run.id, 0): ""}
    with psycopg.connect(url) as connection:
        connection.execute(
            "UPDATE dbos.workflow_status SET delay_until_epoch_ms = delay_until_epoch_ms - 3600001"
        )
    database.wake_delayed()
    assert _asked_for(url) == [CODE]


def test_what_was_settled_is_forgotten_and_nothing_else(url: str, database: DbosDatabase) -> None:
    _queue(url, _run(), _run())
    [settled] = database.claim("work", "w", CODE, 1)
    [held] = database.claim("work", "w", CODE, 1)
    database.settle(settled)
    assert database.forget_settled("2000-01-01T00:00:00+00:00") == 0
    assert database.forget_settled("2100-01-01T00:00:00+00:00") == 1
    assert list(_holders(url, [settled.workflow_id, held.workflow_id])) == [held.workflow_id]


def test_a_pickled_row_is_never_executed(url: str, database: DbosDatabase, tmp_path: Path) -> None:
    mark = tmp_path / "executed"

    class Attack:
        def __reduce__(self) -> tuple[Any, ...]:
            return (os.mkdir, (str(mark),))

    poison = base64.b64encode(pickle.dumps(Attack())).decode()
    run = _run()
    _queue(url, run)
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE dbos.workflow_status SET serialization = 'py_pickle'")
        connection.execute("UPDATE dbos.workflow_input SET inputs = %s", (poison,))
    from contextlib import suppress

    with suppress(Exception):
        database._client.list_workflows()
    assert _holders(url, [workflow_id(run.id, 0)])
    assert not mark.exists()


def test_dbos_says_nothing_and_obeys_no_variable_of_its_maker(
    url: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DBOS__CLOUD", "true")
    monkeypatch.setenv("DBOS__VMID", "somebody")
    migrate(url)
    database = DbosDatabase(url)
    database.register(QueueSpec(name="fresh"))
    database.close()
    assert "DBOS__CLOUD" not in os.environ
    assert capfd.readouterr() == ("", "")
    assert logging.getLogger("dbos").handlers


def test_another_version_of_dbos_is_refused_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda name: "9.9.9")
    with pytest.raises(UserMustAct, match=r"dbos 9\.9\.9 is installed.*pip install"):
        check_installed()


def test_a_private_method_that_changed_is_found_at_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from dbos._sys_db import SystemDatabase

    monkeypatch.setattr(SystemDatabase, "reenqueue_for_recovery", lambda self, other: None)
    with pytest.raises(UserMustAct, match="reenqueue_for_recovery"):
        check_installed()


def test_a_server_that_is_away_is_an_error_that_passes(url: str) -> None:
    away = DbosDatabase("postgresql://podium@127.0.0.1:1/none")
    with pytest.raises(StoreAway, match="cannot be reached"):
        away.wake_delayed()
    away.close()
