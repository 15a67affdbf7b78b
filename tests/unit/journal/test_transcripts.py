"""Transcripts: complete, private, without secrets, never overwritten."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from podium.core.errors import BadInput, NotPossibleNow
from podium.core.turns import Turn
from podium.store import FileTranscripts, Redactor, transcripts
from podium.store.transcripts import FileTranscript

TURN = Turn(run_id="run_1", step_key="ask#0", role="tester", prompt="use hunter2", workspace="/w")


def _redact(text: str) -> str:
    return text.replace("hunter2", "[redacted:password]")


def test_lines_and_prompt_are_kept_without_secrets(tmp_path: Path) -> None:
    with FileTranscripts(tmp_path, _redact).open(TURN, "gemini") as transcript:
        transcript.write('{"key": "hunter2"}')
        transcript.write("plain")
    kept = Path(transcript.path)
    assert kept == tmp_path / "run_1/replies/ask-0-gemini.jsonl"
    assert kept.read_text() == '{"key": "[redacted:password]"}\nplain\n'
    assert (tmp_path / "run_1/prompts/ask-0-gemini.txt").read_text() == "use [redacted:password]"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_a_line_is_in_the_file_before_the_turn_is_over(tmp_path: Path) -> None:
    with FileTranscripts(tmp_path, _redact).open(TURN, "gemini") as transcript:
        transcript.write("first")
        assert Path(transcript.path).read_text() == "first\n"


def test_a_step_that_is_asked_again_gets_a_transcript_of_its_own(tmp_path: Path) -> None:
    made = FileTranscripts(tmp_path, _redact)
    with made.open(TURN, "gemini") as one:
        one.write("one")
    with made.open(TURN, "gemini") as two:
        two.write("two")
    assert Path(one.path).read_text() == "one\n"
    assert Path(two.path).name == "ask-0-gemini.2.jsonl"


def test_a_long_line_is_cut_behind_the_redaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcripts, "MAX_LINE", 10)
    with FileTranscripts(tmp_path, _redact).open(TURN, "gemini") as transcript:
        transcript.write("12345hunter2 and more")
    assert Path(transcript.path).read_text() == "12345[reda [… 11 more characters]\n"


def test_a_full_transcript_says_how_many_lines_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcripts, "MAX_BYTES", 9)
    with FileTranscripts(tmp_path, _redact).open(TURN, "gemini") as transcript:
        for line in ("äöü", "b", "c", "de"):
            transcript.write(line)
    kept = Path(transcript.path).read_text()
    assert kept == "äöü\nb\n[… 2 more lines with 3 characters: the transcript is full]\n"


def test_half_a_surrogate_pair_and_newlines_do_not_break_the_file(tmp_path: Path) -> None:
    with FileTranscripts(tmp_path, _redact).open(TURN, "../../evil") as transcript:
        transcript.write("a\ud83d\nb\rc")
    assert Path(transcript.path).parent == tmp_path / "run_1/replies"
    assert Path(transcript.path).read_text() == "a? bc\n"


def test_a_run_id_that_is_no_plain_name_is_refused(tmp_path: Path) -> None:
    evil = TURN.model_copy(update={"run_id": "../out"})
    with pytest.raises(BadInput), FileTranscripts(tmp_path, _redact).open(evil, "gemini"):
        pass


def test_transcript_that_cannot_be_begun_is_reported_before_anything_is_asked(
    tmp_path: Path,
) -> None:
    (tmp_path / "run_1").write_text("in the way")
    with (
        pytest.raises(NotPossibleNow, match="free space"),
        FileTranscripts(tmp_path, _redact).open(TURN, "gemini"),
    ):
        pass


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_does_not_cost_the_turn(tmp_path: Path) -> None:
    full = Path("/dev/full")
    transcript = FileTranscript(full.open("w", buffering=1), full, _redact)
    transcript.write("one")
    transcript.write("two")
    assert (transcript._written, transcript._dropped_lines) == (transcripts.MAX_BYTES, 1)
    transcript.close()


def test_a_secret_that_goes_over_several_lines_is_taken_back_from_the_earlier_ones(
    tmp_path: Path,
) -> None:
    redact = Redactor({"KEY": "Zk3vQ9xT7wLm2p8"}).text
    with FileTranscripts(tmp_path, redact).open(TURN, "gemini") as transcript:
        for line in ("before", "it is Zk3vQ9", "xT7", "wLm2p8 ö.", "behind", "Zk3vQ9"):
            transcript.write(line)
    assert Path(transcript.path).read_text().splitlines() == [
        "before it is [redacted:KEY] ö.", "behind", "Zk3vQ9",
    ]  # fmt: skip
