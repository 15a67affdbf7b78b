"""Characters that the pipeline sends to a model, against one agent alone that does the same work.

The model plays a script: it looks, changes, tests and commits as a model that thinks would, in as few requests as the
prompts allow. What is measured is what Podium sends.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from benchmarks.figures import Figure
from podium.core.work import RunStatus
from podium.jobs.pipeline.agent_text import slug_of
from podium.testing.modelserver import ModelServer
from tests.integration.contract.media import KEY, NONCE, OPENAI_API
from tests.integration.pipeline.pipeline_harness import Project

BUG = "Discounts of 100 % or more give a negative price"
FEATURE = "Let a discount be given as a text such as '15 %'"
CODE = '''"""Prices of a shop."""

from decimal import ROUND_HALF_UP, Decimal

CENT = Decimal("0.01")


def rounded(amount):
    """To the cent, halves up."""
    return Decimal(amount).quantize(CENT, rounding=ROUND_HALF_UP)


def net(gross, tax):
    """The price without a tax in percent."""
    return rounded(Decimal(gross) * 100 / (100 + Decimal(tax)))


def discounted(price, percent):
    """The price less a discount in percent."""
    return rounded(Decimal(price) * (100 - Decimal(percent)) / 100)


def total(prices, percent=0):
    """What all of them come to."""
    return rounded(sum((discounted(each, percent) for each in prices), Decimal(0)))
'''
MORE = "".join(
    f'\n\ndef shipping_to_zone_{number}(weight):\n    """What a parcel to zone {number} costs."""\n'
    f"    return rounded(Decimal(weight) * {number} / 7)\n"
    for number in range(180)
)
"""Makes a file of 900 lines: what is read of it is sent again with every later request."""
TEST = """import unittest
from decimal import Decimal

from prices import discounted, net, total


class Prices(unittest.TestCase):
    def test_a_discount(self):
        self.assertEqual(discounted(200, 10), Decimal("180.00"))

    def test_a_net_price(self):
        self.assertEqual(net(119, 19), Decimal("100.00"))

    def test_a_total(self):
        self.assertEqual(total([1, 2, 3], 50), Decimal("3.00"))
"""
ALONE = """You are a software developer. Do the task in this repository: find the place, change it, prove it by a test, run the tests, commit.

{{inputs}}

The tests are run so:

{{checks}}

End with exactly one JSON object:

```json
{"commit_hash": "4f2a9c1d8e7b6a5f4c3d2e1f0a9b8c7d6e5f4a3b", "status": "success", "podium_nonce": "{{nonce}}"}
```
"""
LIST = {"run": "git ls-files && git log --oneline | head -5"}
TESTS = {"run": "python3 -m unittest -q"}
FIX = [
    {
        "run": "sed -i 's/^    def test_a_net/    def test_too_much(self):\\n        self.assertEqual(discounted(5, 120), 0)"
        "\\n\\n    def test_a_net/' test_prices.py"
    },
    TESTS,
    {
        "run": "sed -i 's/(100 - Decimal(percent))/max(Decimal(0), 100 - Decimal(percent))/' prices.py"
    },
    TESTS,
]
ADD = [
    {
        "run": "sed -i -e 's/^from prices import /from prices import percentage, /' -e 's/^    def test_a_net/    def test_a_text"
        '(self):\\n        self.assertEqual(percentage("15 %"), 15)\\n\\n    def test_a_net/\' test_prices.py'
    },
    TESTS,
    {
        "run": "printf '\\n\\ndef percentage(text):\\n    return Decimal(str(text).strip().removesuffix(\"%%\"))\\n' >> prices.py"
    },
    TESTS,
]
COMMIT = "git add --all && git commit --quiet --message 'Change how discounts are read' && git rev-parse HEAD"
VERIFIED = "- [x] the scenarios have tests\n- [x] all tests pass: unittest, OK\n"
PLAN = """# Plan

## Reference documents
- `prices.py`, `test_prices.py`

## Detailed logic
`discounted` (`prices.py:18-20`) multiplies with `100 - percent`, which is negative above 100. Take `max(0, 100 - percent)`. `total` uses it and needs no change.

## Test scenarios with expected values
| Scenario | Input | Expected |
| --- | --- | --- |
| more than all | `discounted(5, 120)` | `0.00` |
| exactly all | `discounted(5, 100)` | `0.00` |

## Documentation to update
None: nothing describes the limits of a discount.

## Expected deliverables
- `prices.py`: `discounted`
- `test_prices.py`: one test

## Completion checklist
- [ ] `discounted(5, 120)` is 0
- [ ] all tests pass
"""
REPORT = """# Diagnosis

`python3 -c "import prices; print(prices.discounted(5, 120))"` prints `-1.00`. Cause: `prices.py:21`, `discounted` multiplies with `100 - percent`, which is
negative above 100. `total` passes its percentage on to it. No test has a percentage above 50.
"""
SHORT_PLAN = (
    PLAN[PLAN.index("## Detailed") : PLAN.index("## Documentation")]
    + PLAN[PLAN.index("## Expected") :]
)
REVIEW = "# Review\n\nRead the diff and ran the tests; `discounted(5, 120)` is 0 and fails without the change.\n\n## Findings\n\nNone\n"


async def measure() -> list[Figure]:
    figures = []
    for task, kind, code, modes in (
        (BUG, "a bug fix", CODE, {"quick": 1.5, "standard": 2.5, "bugfix": 2.5}),
        (BUG, "a bug fix in a long file", CODE + MORE, {"quick": 1.5}),
        (FEATURE, "a feature", CODE, {"quick": 1.5, "standard": 2.5}),
    ):
        _, bare = (await _sent(task, "alone", code))["alone"]
        for mode, most in modes.items():
            sent = await _sent(task, mode, code)
            requests = sum(count for count, _ in sent.values())
            size = sum(size for _, size in sent.values())
            label = f"sent for {kind}, {mode} ({requests} requests)"
            figures.append(
                Figure(label, size / 1000, "K", bare / 1000, "one agent alone", most_ratio=most)
            )
            figures += [
                Figure(f"  {stage} ({count})", size / 1000, "K")
                for stage, (count, size) in sent.items()
            ]
    return figures


async def _sent(task: str, mode: str, code: str) -> dict[str, tuple[int, int]]:
    """Stage → requests and characters that the model was sent."""
    with tempfile.TemporaryDirectory() as folder:
        async with ModelServer(
            {"rules": _rules(slug_of(task), ADD if task == FEATURE else FIX)}, key=KEY
        ) as server:
            project = _project(Path(folder), server.url, code)
            run = await project.run(task, mode=mode)
            if run.status is not RunStatus.SUCCEEDED:
                raise RuntimeError(f"{mode}: {run.status.value}: {run.failure or run.waiting_for}")
            counts, sizes = Counter[str](), Counter[str]()
            for seen in server.requests:
                counts[seen.rule] += 1
                sizes[seen.rule] += len(json.dumps(seen.body, ensure_ascii=False))
    return {stage: (counts[stage], sizes[stage]) for stage in counts}


def _project(folder: Path, url: str, code: str) -> Project:
    stages = {
        "alone": {"does": "work", "role": "developer", "prompt": "prompts/alone.md", "gives": ["task"], "next": {"DONE": "deliver"}}
    }  # fmt: skip
    project = Project(folder)
    project.home.mkdir(parents=True)
    project.environ["MODEL_KEY"] = KEY
    own = {"secrets": ["MODEL_KEY"], "agents": {"player": OPENAI_API.settings(url)}}
    (project.home / "config.yaml").write_text(yaml.safe_dump(own))
    settings = {
        "agents": {},
        "checks": ["python3 -m unittest -q"],
        "flows": {"pipeline": {"stages": stages, "modes": {"alone": "alone"}}},
    }
    files = {
        "prices.py": code,
        "test_prices.py": TEST,
        "prompts/alone.md": ALONE,
        "calc.py": "",
        "test_calc.py": "",
    }
    return project.build([], settings=settings, files=files)


def _rules(feat: str, change: list[dict[str, str]]) -> list[dict[str, Any]]:
    documents = (
        f"docs/dev_docs/research/diagnostic_report_{feat}.md",
        f"docs/dev_docs/plans/plan_{feat}.md",
    )
    verification = f"docs/dev_docs/reviews/verification_report_{feat}.md"
    work = {"status": "success", "commit_hash": "HEAD"}
    # Whoever asks for all that it needs at once is told that it may, in every role and alone.
    both = _at_once(("read_file", {"path": "prices.py"}), ("read_file", {"path": "test_prices.py"}))
    shown = {"run": "python3 -c 'import prices; print(prices.discounted(5, 120))'"}
    return [
        _rule("alone", LIST, both, TESTS, *change, {"run": COMMIT}, payload=work),
        _rule("investigate", LIST, both, shown, _written(documents[0], REPORT), payload={"report_path": documents[0]}),
        _rule("analyse", payload={"verdict": "APPROVE"}),
        # A quick plan comes with the answer; its reader has searched, read both places and shown the fault.
        _rule("plan", LIST, both, shown, payload={"document": SHORT_PLAN}, when="short plan"),
        _rule("plan", LIST, both, shown, _written(documents[1], PLAN), payload={"plan_path": documents[1]}),
        _rule("plan_review", payload={"verdict": "APPROVE"}),
        _rule(
            "develop",
            *change,
            _at_once(("write_file", {"path": verification, "content": VERIFIED}), ("run_command", {"command": COMMIT})),
            payload=work,
        ),
        _rule("audit", payload={"verdict": "PASS", "document": REVIEW}),
    ]  # fmt: skip


def _rule(
    stage: str, *steps: dict[str, Any], payload: dict[str, Any], when: str = ""
) -> dict[str, Any]:
    """`when`: words of the prompt before those that name the stage."""
    answer = {"payload": {**payload, "podium_nonce": "{{nonce}}"}}
    words = f"{when}[\\s\\S]*" if when else ""
    matches = f"{words}Stage: {stage}, round 1\\.{NONCE}"
    return {"name": stage, "when": matches, "steps": [*steps, answer]}


def _written(path: str, content: str) -> dict[str, Any]:
    return {"write": {"path": path, "content": content}}


def _at_once(*calls: tuple[str, dict[str, str]]) -> dict[str, Any]:
    return {"tools": [{"name": name, "arguments": arguments} for name, arguments in calls]}
