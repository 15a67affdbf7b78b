"""No encoding of a known secret gets past anything that writes, shows, or lets commits in."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_core import to_json

from podium.app.app import Podium
from podium.app.notices import Happening, notice_of
from podium.app.secrets import secret_finder
from podium.core.decisions import Tier
from podium.core.encoded_secrets import EncodedSecrets
from podium.core.errors import SecretsCommitted
from podium.core.events import Event, NoteTaken, RunFailed
from podium.core.turns import Turn
from podium.core.work import Failure, Run, RunStatus
from podium.core.workspaces import SECRET_VALUE_PREFIX
from podium.ports import Transaction
from podium.store import FileTranscripts, Redactor
from podium.tools.packs.pack_handler import PackSecrets
from tests.integration.attacks.encodings import ENCODINGS
from tests.integration.workspaces.git_project import GitProject, agent_commits, agent_git
from tests.soaking import examples, in_soak
from tests.unit.notices.notices_harness import add_run, ask, podium_in

VALUE = "Zk3v/Q9x+T7wLm2-p8Rb"
MARK = "[redacted:DEPLOY_TOKEN]"
TEXTS = {how: f"<{encode(VALUE)}>" for how, encode in ENCODINGS.items()}


@pytest.fixture
def podium(tmp_path: Path) -> Podium:
    return podium_in(tmp_path, messages=[], DEPLOY_TOKEN=VALUE)


async def test_nothing_stored_holds_one(podium: Podium) -> None:
    store = await podium.store()
    deps = (store, podium.clock, podium.ids)
    for text in TEXTS.values():
        run = await add_run(*deps, task=text)
        await ask(*deps, run, summary=text, tier=Tier.T3)
        await store.write(partial(_take_note, run.id, text))
    await podium.close()
    stored = b"".join(file.read_bytes() for file in podium.folders.state.rglob("podium.db*"))
    assert [how for how, text in TEXTS.items() if to_json(text)[1:-1] in stored] == []
    assert stored.count(MARK.encode()) >= 4 * len(TEXTS)


def _take_note(run_id: str, text: str, tx: Transaction) -> None:
    tx.append(run_id, NoteTaken(text=text))


def test_no_prompt_reply_or_notice_holds_one(podium: Podium, tmp_path: Path) -> None:
    transcripts = FileTranscripts(tmp_path / "runs", podium.redactor.text)
    through = []
    for how, text in TEXTS.items():
        turn = Turn(run_id="run_1", step_key="ask#0", role="r", prompt=text, workspace="/w")
        with transcripts.open(turn, "a") as transcript:
            for line in text.splitlines():
                transcript.write(line)
        reply = Path(transcript.path)
        prompt = reply.parent.with_name("prompts") / f"{reply.stem}.txt"
        written = (reply.read_text(), prompt.read_text(), notice(podium, text))
        through += [how for one in written if MARK not in one or text in one]
    assert through == []


def notice(podium: Podium, text: str) -> str:
    now = datetime(2026, 1, 2, tzinfo=UTC)
    run = Run(id="run_1", flow="demo", task=text, created_at=now, status=RunStatus.FAILED)
    body = RunFailed(failure=Failure(kind="broken", message=text))
    event = Event(run_id=run.id, seq=1, position=1, at=now, body=body)
    happening = Happening(what="ended", event=event, run=run)
    return notice_of([happening], link_to=str, redact=podium.redactor.text).model_dump_json()


@pytest.mark.sample(18)
@pytest.mark.parametrize("how", ENCODINGS)
def test_every_encoding_is_hidden_and_named(podium: Podium, how: str) -> None:
    text = TEXTS[how]
    assert MARK in podium.redactor.text(text)
    assert MARK in podium.redactor.json_text(to_json({"a": [text]}).decode())
    assert "[redacted:T]" in PackSecrets({"T": VALUE}).text(text)
    assert secret_finder(podium.redactor)(text) == (f"{SECRET_VALUE_PREFIX}DEPLOY_TOKEN",)


@pytest.mark.parametrize("step", [8, in_soak(1)])
async def test_commits_with_one_are_refused(podium: Podium, tmp_path: Path, step: int) -> None:
    """The finder knows all of them, see above: some are enough to see that commits are given to it."""
    git_project = GitProject(tmp_path).build()
    git_project.secrets_in = secret_finder(podium.redactor)
    workspace = await git_project.made()
    for number, text in enumerate(list(TEXTS.values())[::step]):
        agent_commits(workspace.record, f"{number}.txt", f"before\n{text}\nbehind\n")
        with pytest.raises(SecretsCommitted, match="DEPLOY_TOKEN"):
            await workspace.deliver()
        agent_git(workspace.record, "reset", "--quiet", "--hard", "HEAD~1")


@settings(max_examples=examples(40), deadline=None)
@given(
    st.text("abcXYZ0123456789-_/+$", min_size=6, max_size=60),
    st.sampled_from([one for one in ENCODINGS if "base64" in one or "hex" in one]),
    st.text(max_size=30),
)
def test_any_value_is_known_in_an_exact_encoding(value: str, how: str, around: str) -> None:
    encoded = ENCODINGS[how](value)
    text = f"{around} {encoded} {around}"
    hidden = EncodedSecrets([("T", value)]).hide(text)
    assert encoded not in hidden
    assert "[redacted:T]" in hidden


@pytest.mark.parametrize(
    ("value", "prose"),
    [
        ("summer24", "Summer 24 was hot; 24 summers; SUMMER-24"),
        ("changeme", "Please change me: CHANGEME, ChangeMe, change\nme"),
        ("swordfish", "Swordfish, sword fish, SWORD-FISH"),
        ("correct-horse", "Correct horse! CORRECT-HORSE"),
        ("12345678", "1234 5678, 1 2 3 4 5 6 7 8"),
        ("-----BEGIN A KEY-----\nabc\n", "begin a key, then abc"),
        (
            "Zk3vQ9xT7wLm2",
            "1: Zk3v\n2: k3vQ\n<b>9xT7</b>wLm2 ＺＫ３\x1b[0m\n00000000: 5a6b 3376  Zk3v\n[90, 107]",
        ),
        ("Zk3vQ9xT7wLm2", "k3vQ9xT7wLm2 Zk3vQ9xT7wLm %5Ak3vQ9 &amp;&nosuch; \\u12 %zz 0x1"),
    ],
)
def test_ordinary_words_are_left_as_they_are(value: str, prose: str) -> None:
    assert Redactor({"A_PASSWORD": value}).text(prose) == prose
    assert Redactor({"A_PASSWORD": value}).values_in(prose) == ()


@pytest.mark.parametrize(
    "how", ["hex as xxd prints it", "hex as hexdump prints it", "base85", "base85, Adobe's"]
)
def test_nothing_of_the_value_is_left_beside_the_mark(how: str) -> None:
    hidden = EncodedSecrets([("T", VALUE)]).hide(f"behold {ENCODINGS[how](VALUE)}")
    assert hidden.removeprefix("behold ").removeprefix("00000000").strip(": \n") == "[redacted:T]"


@pytest.mark.parametrize("how", ["percent", "HTML, decimal", "unicode escapes", "hex", "base64"])
def test_a_short_value_is_known_in_an_exact_encoding(how: str) -> None:
    redactor = Redactor({"A_PASSWORD": "hunter"})
    assert redactor.text(ENCODINGS[how]("hunter")) == "[redacted:A_PASSWORD]"


@pytest.mark.sample(8)
@pytest.mark.parametrize(
    "piece",
    [
        "\\", "%25", "&#0", "&amp", "0x", "\\u", "\\u{0", "\\\\n", " ", "\u200b", "Zk3v", "5a6b", "Z ",
        "Wmsz", "%5Ak3v", "a", "\n1: ", "\nabcd  ", "0a  ", "<b", "\x1b[", "\uff21", "<a>\n12 a  b",
    ],
)  # fmt: skip
def test_twice_as_much_hostile_text_takes_about_twice_the_work(piece: str) -> None:
    """Counted in calls of Python and of C functions, each of which is linear: no clock has a part in it."""
    redactor = Redactor({f"KEY_{n}": f"{VALUE}{n}" for n in range(3)} | {"AS": "a" * 20})
    small, large = (calls(redactor, piece * (size // len(piece))) for size in (20_000, 40_000))
    assert large <= 2.5 * small + 1_000


def calls(redactor: Redactor, text: str) -> int:
    counted = 0

    def count(*args: object) -> None:
        nonlocal counted
        counted += 1

    sys.setprofile(count)
    try:
        redactor.text(text + VALUE[:9] + " " + VALUE[9:])
    finally:
        sys.setprofile(None)
    return counted
