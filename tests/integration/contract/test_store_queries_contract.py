"""Paging and search in every `Store`: backwards in a run, and by the words of a task."""

from __future__ import annotations

from podium.ports import EventQuery, RunQuery, Store, Transaction
from tests.unit.contract.nouns import a_note, a_run


async def test_events_of_a_run_are_read_up_to_one_of_them(store: Store) -> None:
    def work(tx: Transaction) -> None:
        tx.add_run(a_run(id="run_1"))
        for number in range(5):
            tx.append("run_1", a_note(str(number)))

    await store.write(work)
    query = EventQuery(run_id="run_1", after_seq=1, until_seq=3)
    assert [event.seq for event in await store.read(lambda view: view.events(query))] == [2, 3]


async def test_a_run_is_found_so_many_runs_back_and_lists_go_no_further_than_it(
    store: Store,
) -> None:
    def work(tx: Transaction) -> None:
        for number in range(5):
            tx.add_run(a_run(id=f"run_{number}"))

    await store.write(work)

    async def back(run_id: str | None, many: int) -> str | None:
        return await store.read(lambda view: view.run_back(run_id, many))

    assert await back(None, 1) == "run_4"
    assert await back(None, 5) == "run_0"
    assert await back(None, 6) is None
    assert await back("run_3", 2) == "run_1"
    assert await back("run_0", 1) is None
    query = RunQuery(from_id="run_1", before_id="run_3")
    found = await store.read(lambda view: view.runs(query))
    assert [run.id for run in found] == ["run_2", "run_1"]


async def test_runs_are_found_by_words_of_their_task_and_by_nothing_else(store: Store) -> None:
    tasks = {
        "run_1": 'Mend the "big" Roof, 100%',
        "run_2": "Über_alles",
        "run_3": "input",
        "run_4": "",
    }

    def work(tx: Transaction) -> None:
        for run_id, task in tasks.items():
            tx.add_run(a_run(id=run_id, task=task, input={"word": "roof", "more": "big"}))

    await store.write(work)

    async def found(text: str) -> list[str]:
        runs = await store.read(lambda view: view.runs(RunQuery(text=text)))
        return [run.id for run in runs]

    assert await found("roof") == ["run_1"]
    assert await found('"BIG"') == ["run_1"]
    assert await found("100%") == ["run_1"]
    assert await found("r_alles") == ["run_2"]
    assert await found("Über") == ["run_2"]
    assert await found("l%s") == []
    assert await found("word") == []
    assert await found("\ud800") == []
    assert await found("") == ["run_4", "run_3", "run_2", "run_1"]
