"""`podium modelserver`."""

from __future__ import annotations

import http.client
import json
import shutil
import signal
import socket
import stat
import subprocess
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from podium.testing import retry_until_blocking
from tests.integration.cli.command_runner import CommandRunner

SCRIPT = """
rules:
  - marker: hello
    steps:
      - text: Good day.
"""
BODY = {"model": "m-1", "messages": [{"role": "user", "content": "SCRIPT:hello"}]}
KEY = "sk-very-secret-1234"


class Served:
    """A command that serves, seen from outside."""

    def __init__(self, process: subprocess.Popen[str], url: str, greeting: list[str]) -> None:
        self.process = process
        self.url = url
        self.greeting = greeting

    def post(self, key: str = KEY, body: Any = BODY) -> tuple[int, Any]:
        line = http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=120)
        headers = {"Authorization": f"Bearer {key}"}
        line.request("POST", "/v1/chat/completions", json.dumps(body), headers)
        answer = line.getresponse()
        payload = json.loads(answer.read())
        line.close()
        return answer.status, payload

    def end(self, by: signal.Signals = signal.SIGINT) -> tuple[str, str]:
        self.process.send_signal(by)
        return self.process.communicate(timeout=120)


@contextmanager
def serving(
    cli: CommandRunner, *arguments: str, lines: int = 8, env: dict[str, str] | None = None
) -> Iterator[Served]:
    process = subprocess.Popen(
        cli.command("modelserver", *arguments),
        cwd=cli.project,
        env={**cli.environ, **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        greeting = [process.stdout.readline() for _ in range(lines)]
        yield Served(process, _url(greeting[0]), greeting)
    finally:
        process.kill()
        process.communicate()


def _url(greeting: str) -> str:
    if greeting.startswith("{"):
        return str(json.loads(greeting)["url"])
    return greeting.removeprefix("listening on ").partition(";")[0]


def reply_text(answer: Any) -> str:
    return str(answer["choices"][0]["message"]["content"])


def test_a_script_is_played_until_somebody_interrupts(cli: CommandRunner) -> None:
    (cli.project / "s.yaml").write_text(SCRIPT)
    with serving(cli, "--script", "s.yaml") as served:
        status, answer = served.post()
        assert (status, reply_text(answer)) == (200, "Good day.")
        assert f"  export GOOGLE_GEMINI_BASE_URL={served.url}\n" in served.greeting
        assert f"  export ANTHROPIC_BASE_URL={served.url}\n" in served.greeting
        assert f"  export OPENAI_BASE_URL={served.url}/v1\n" in served.greeting
        assert "  export GEMINI_API_KEY=any-key\n" in served.greeting
        assert served.greeting[-1].startswith("  codex -c model_provider=podium -c ")
        out, err = served.end()
    assert out == "POST /v1/chat/completions m-1 hello step 1 200\n"
    assert err == "podium: stopped after 1 request\n"
    assert served.process.returncode == 0


@pytest.mark.soak
def test_a_polite_request_to_end_is_the_same(cli: CommandRunner) -> None:
    (cli.project / "s.yaml").write_text(SCRIPT)
    with serving(cli, "--script", "s.yaml") as served:
        _, err = served.end(signal.SIGTERM)
    assert (served.process.returncode, err) == (0, "podium: stopped after 0 requests\n")


def test_json_is_an_object_a_line(cli: CommandRunner) -> None:
    (cli.project / "s.json").write_text(json.dumps({"default": {"steps": ["hi"]}}))
    with serving(cli, "--script", "s.json", "--json", lines=1) as served:
        served.post()
        greeting = json.loads(served.greeting[0])
        assert greeting["environment"]["OPENAI_BASE_URL"] == f"{served.url}/v1"
        out, _ = served.end()
    first, last = map(json.loads, out.splitlines())
    assert (first["rule"], first["step"], first["status"]) == ("default", 0, 200)
    assert first["model"] == "m-1"
    assert last == {"ended": True, "requests": 1}


def test_a_key_is_wanted_and_shown_nowhere(cli: CommandRunner) -> None:
    (cli.project / "s.yaml").write_text(SCRIPT)
    log = cli.project / "log.jsonl"
    arguments = ("--script", "s.yaml", "--log", str(log))
    with serving(cli, *arguments, env={"PODIUM_MODELSERVER_KEY": KEY}) as served:
        assert served.post(key="sk-other")[0] == 401
        assert served.post()[0] == 200
        odd = {"model": "\ud800", "messages": [{"role": "user", "content": "\ud800\x1b[2J"}]}
        assert served.post(body=odd)[0] == 200
        assert '  export GEMINI_API_KEY="$PODIUM_MODELSERVER_KEY"\n' in served.greeting
        retry_until_blocking(lambda: log.read_text().count("\n") == 3)
        out, err = served.end()
    everything = "".join(served.greeting) + out + err + log.read_text()
    assert KEY not in everything
    assert "sk-other" not in everything
    assert "\x1b" not in out
    first, second, third = map(json.loads, log.read_text().splitlines())
    assert third["model"] == "\ud800"
    assert (first["status"], first["has_key"]) == (401, True)
    assert (second["body"], second["prompt"]) == (BODY, "SCRIPT:hello")


@pytest.mark.soak
def test_what_is_recorded_can_be_replayed(cli: CommandRunner) -> None:
    (cli.project / "s.yaml").write_text(SCRIPT)
    with serving(cli, "--script", "s.yaml") as provider:
        arguments = ("--record", "tape.jsonl", "--upstream", provider.url)
        with serving(cli, *arguments, lines=5) as recorder:
            assert not any("_API_KEY=" in line for line in recorder.greeting)
            assert reply_text(recorder.post()[1]) == "Good day."
            out, _ = recorder.end()
    assert out == "POST /v1/chat/completions m-1 recorded 200\n"
    assert KEY not in (cli.project / "tape.jsonl").read_text()
    with serving(cli, "--replay", "tape.jsonl") as role_agent:
        assert reply_text(role_agent.post()[1]) == "Good day."
        status, missing = role_agent.post(body={**BODY, "model": "m-2"})
        assert (status, "--record tape.jsonl" in missing["error"]["message"]) == (404, True)


def test_a_fault_in_the_script_is_named_with_its_line_and_key(cli: CommandRunner) -> None:
    (cli.project / "s.yaml").write_text(
        "rules:\n"
        "  - marker: a\n"
        "    steps:\n"
        "      - txt: hi\n"
        "      - status: 20\n"
        "  - when: '('\n"
        "    steps: []\n"
    )
    reply_text = cli.run("modelserver", "--script", "s.yaml")
    assert reply_text.code == 2
    for words in (
        "s.yaml:4:9: rules[0].steps[0].txt: unknown key 'txt'",
        "s.yaml:5:9: rules[0].steps[1].status: input should be greater than or equal to 400",
        "s.yaml:6:5: rules[1].when: is not a valid regular expression",
        "s.yaml:7:5: rules[1].steps:",
    ):
        assert words in reply_text.err
    assert "rules[0].steps:" not in reply_text.err


@pytest.mark.parametrize("way", [("--replay", "b"), ("--record", "a", "--upstream", "http://x")])
def test_a_key_that_nobody_would_be_asked_for_is_refused(
    cli: CommandRunner, way: tuple[str, ...]
) -> None:
    reply_text = cli.run("modelserver", *way, "--key", KEY)
    assert reply_text.code == 2
    assert "requires --script or --by-hand" in reply_text.err
    assert KEY not in reply_text.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "pass one of --script FILE, --record FILE, --replay FILE or --by-hand"),
        (("--script", "a", "--by-hand"), "pass one of"),
        (("--script", "a", "--folder", "d"), "--folder and --timeout require --by-hand"),
        (("--replay", "a", "--timeout", "3"), "--folder and --timeout require --by-hand"),
        (("--by-hand", "--timeout", "0"), "0.001"),
        (("--script", "a", "--replay", "b"), "pass one of"),
        (("--record", "a"), "--record and --upstream must be used together"),
        (
            ("--replay", "a", "--upstream", "http://x"),
            "--record and --upstream must be used together",
        ),
        (("--script", "none.yaml"), "none.yaml: does not exist"),
        (("--replay", "none.jsonl"), "none.jsonl: cannot be read: No such file"),
        (("--record", "a", "--upstream", "nonsense"), "'nonsense' is not the URL of a provider"),
        (("--record", "a", "--upstream", "bing=http://x"), "unknown provider 'bing'"),
        (
            ("--record", "a", "--upstream", "http://x", "--upstream", "http://y"),
            "pass one --upstream URL",
        ),
        (("--script", "s.yaml", "--port", "70000"), "65535"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(
    cli: CommandRunner, arguments: tuple[str, ...], words: str
) -> None:
    reply_text = cli.run("modelserver", *arguments)
    assert reply_text.code == 2
    assert words in reply_text.err


def test_port_in_use_is_reported(cli: CommandRunner) -> None:
    (cli.project / "s.yaml").write_text(SCRIPT)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        reply_text = cli.run("modelserver", "--script", "s.yaml", "--port", port)
    assert reply_text.code == 2
    assert f"cannot listen on port {port}" in reply_text.err


CUT = (ConnectionError, http.client.IncompleteRead)
"""How a client sees it that the server is gone, with or without a sign of life before."""


@contextmanager
def asked(served: Served) -> Iterator[Future[tuple[int, Any]]]:
    """A client that waits for its answer."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(served.post)


def put(folder: Path, name: str, text: str) -> None:
    (folder / "draft").write_text(text)
    (folder / "draft").replace(folder / name)


def test_by_hand_a_request_waits_in_the_folder_for_its_answer(cli: CommandRunner) -> None:
    folder = cli.project / "trial"
    with serving(cli, "--by-hand", "--folder", "trial", lines=10) as served:
        assert served.greeting[8].startswith(f"answer at {served.url}/page/")
        assert served.greeting[9].startswith(f"or in {folder}, as NNNN-answer.json")
        with asked(served) as reply:
            retry_until_blocking((folder / "0001-request.json").exists)
            put(folder, "0001-answer.md", "By hand.")
            status, answer = reply.result(120)
        assert (status, reply_text(answer)) == (200, "By hand.")
        assert served.process.stdout is not None
        messages = [served.process.stdout.readline() for _ in range(2)]
        out, err = served.end()
    size = len(json.dumps(BODY))
    waiting = f"0001 chat m-1 {size} bytes 0 tools waiting for 0001-answer.json\n"
    assert (messages, out) == ([waiting, "0001 answered\n"], "")
    assert err == "podium: stopped after 1 request\n"
    assert served.process.returncode == 0
    assert KEY not in "".join(path.read_text() for path in folder.iterdir())
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_by_hand_json_is_one_line_per_request(cli: CommandRunner) -> None:
    with serving(cli, "--by-hand", "--json", "--timeout", "0.3", lines=1) as served:
        greeting = json.loads(served.greeting[0])
        assert greeting["page"].startswith(f"{served.url}/page/")
        status, answer = served.post()
        assert (status, "within 0.3 s" in answer["error"]["message"]) == (504, True)
        out, _ = served.end()
    first, last = map(json.loads, out.splitlines())
    assert (first["number"], first["state"], first["same_as"]) == (1, "waiting", None)
    assert first["answer"] == f"{greeting['folder']}/0001-answer.json"
    assert json.loads(Path(first["request"]).read_text())["body"] == BODY
    assert last == {"ended": True, "requests": 1}
    shutil.rmtree(greeting["folder"])


@pytest.mark.soak
def test_by_hand_a_killed_server_is_followed_by_the_next_on_the_same_folder(
    cli: CommandRunner,
) -> None:
    folder = cli.project / "trial"
    with (
        serving(cli, "--by-hand", "--folder", "trial", lines=10) as served,
        asked(served) as cut,
    ):
        retry_until_blocking((folder / "0001-request.json").exists)
        busy = cli.run("modelserver", "--by-hand", "--folder", "trial")
        assert "another model server uses 'trial'" in busy.err
        served.process.kill()
        assert isinstance(cut.exception(120), CUT)
    with serving(cli, "--by-hand", "--folder", "trial", lines=10) as again:
        assert json.loads((folder / "0001-closed.json").read_text())["state"] == "server ended"
        with asked(again) as reply:
            retry_until_blocking((folder / "0002-request.json").exists)
            put(folder, "0002-answer.json", '{"text": "Later."}')
            assert reply_text(reply.result(120)[1]) == "Later."
            _, err = again.end()
    assert (again.process.returncode, err) == (0, "podium: stopped after 1 request\n")


@pytest.mark.soak
def test_by_hand_an_interrupt_ends_it_while_a_client_waits(cli: CommandRunner) -> None:
    folder = cli.project / "trial"
    with (
        serving(cli, "--by-hand", "--folder", "trial", lines=10) as served,
        asked(served) as cut,
    ):
        retry_until_blocking((folder / "0001-request.json").exists)
        _, err = served.end()
        assert isinstance(cut.exception(120), CUT)
    assert (served.process.returncode, err) == (0, "podium: stopped after 1 request\n")
    assert json.loads((folder / "0001-closed.json").read_text())["state"] == "server ended"


def test_help_shows_examples(cli: CommandRunner) -> None:
    reply_text = cli.run("modelserver", "--help")
    assert "podium modelserver --script answers.yaml" in reply_text.out
    assert "podium modelserver --by-hand --folder trial" in reply_text.out


def test_unwritable_log_is_reported(cli: CommandRunner, tmp_path: Path) -> None:
    (cli.project / "s.yaml").write_text(SCRIPT)
    reply_text = cli.run("modelserver", "--script", "s.yaml", "--log", str(tmp_path / "no" / "log"))
    assert reply_text.code == 1
    assert "No such file or directory" in reply_text.err
