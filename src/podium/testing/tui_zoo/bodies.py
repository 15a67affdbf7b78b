"""Bodies of messages such as models write them: what a screen breaks, renders or mixes up."""

from __future__ import annotations

CODE = """1. Read `src/app.py` and list every call of connect().
2. Then:
    def retry(fn, n=3):
        for i in range(n):
            try:
                return fn()
            except OSError as e:  # keep ]] and [[ as they are

                last = e
        raise last
3. Run it."""
MARKDOWN = """# Result
**Done**, _mostly_:
- `tests/test_app.py`: 14 passed
- [docs](docs/app.md) say so, too
> a quotation
| a | b |
|---|---|
| 1 | 2 |
1) and <b>no</b> more"""
UNICODE = "Grüße, 漢字かな, Ελλάδα, עברית, 🙂👍🏽\n→ “quoted” … ¼ €\ne\u0301 and é"
LONG_LINE = (
    "Every call that passes a literal timeout must be moved behind the configuration. " * 8 + "End."
)
UNBROKEN = "sha256=" + "9f86d081884c7d659a2feaa0c55ad015" * 12
TALL = "\n".join(f"{number}. step {number} of many" for number in range(1, 121))
HUGE = "\n".join(f"{number:05} " + "0123456789abcdef " * 5 + "end" for number in range(690))
"""64 KB."""

SHORT = (CODE, MARKDOWN, UNICODE, "1. look\n2. mend")
LONG = (LONG_LINE, UNBROKEN, TALL, HUGE)
