"""Speaks ACP as it is told: run as `python acp_pretender.py PLAN`, JSON with what to do on a prompt.

Each act is an `{"update": …}`, `{"ask": params}` for a permission, `{"write": params}` for a file,
`{"call": method}`, `{"end": reason}`, `{"fail": error}`, `{"exit": code}`, `{"raw": text}`, `{"flood": bytes}` or `{"hang": true}`.
What it was answered it writes to `heard.jsonl` in its folder.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

PLAN: dict[str, Any] = json.loads(sys.argv[1])


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def receive() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        os._exit(0)
    with open("heard.jsonl", "a") as file:
        file.write(line)
    payload: dict[str, Any] = json.loads(line)
    return payload


def answer(number: int, act: dict[str, Any]) -> bool:
    """Do one act of a prompt. True when the prompt is answered."""
    if "update" in act:
        send({"method": "session/update", "params": {"sessionId": "s1", "update": act["update"]}})
    elif "ask" in act or "write" in act:
        method = "session/request_permission" if "ask" in act else "fs/write_text_file"
        send({"id": "q1", "method": method, "params": act.get("ask") or act.get("write")})
        receive()
    elif "call" in act:
        send({"id": "q1", "method": act["call"], "params": {}})
        receive()
    elif "raw" in act:
        sys.stdout.buffer.write(act["raw"].encode("latin-1"))
        sys.stdout.buffer.flush()
    elif "flood" in act:
        sys.stdout.buffer.write(b"x" * act["flood"] + b"\n")
        sys.stdout.buffer.flush()
    elif "hang" in act:
        time.sleep(600)
    elif "exit" in act:
        os._exit(act["exit"])
    elif "fail" in act:
        send({"id": number, "error": act["fail"]})
        return True
    elif "end" in act:
        send({"id": number, "result": {"stopReason": act["end"], **act.get("more", {})}})
        return True
    return False


def main() -> None:
    late: list[dict[str, Any]] = []
    while True:
        message = receive()
        method, number = message.get("method"), message.get("id")
        if method == "initialize":
            version = PLAN.get("version", 1)
            offers = {"loadSession": PLAN.get("loads", False)}
            info = {"name": "pretender", "version": "3.2.1"}
            result = {"protocolVersion": version, "agentCapabilities": offers, "agentInfo": info}
            send({"id": number, "result": result})
        elif method == "session/load":
            old = {
                "sessionUpdate": "agent_message_chunk",
                "content": {"type": "text", "text": "OLD"},
            }
            payload = {"method": "session/update", "params": {"sessionId": "s1", "update": old}}
            send(payload)
            send({"id": number, "result": {}})
            late = [payload] * PLAN.get("late", 0)
        elif method == "session/new":
            opened = PLAN.get("opened", {"result": {"sessionId": "s1"}})
            send({"id": number, **opened})
        elif method == "session/prompt" and isinstance(number, int):
            any(answer(number, act) for act in PLAN["acts"])
        elif method is not None and number is not None:
            if late:
                send(late.pop())
            send({"id": number, "error": {"code": -32601, "message": "Method not found"}})


main()
