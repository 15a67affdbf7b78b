"""Detection of feedback that reports a failure although the status says success."""

from __future__ import annotations

import re
from collections.abc import Iterator

from podium.jobs.pipeline.agent_text import one_line

_MAX_REPORT_CHARACTERS = 240
_MAX_READ = 200_000
_MAX_VALUES = 10_000
_MAX_CLAUSE = 600

_CLAUSE_END = re.compile(
    r"(?<=[.!?])\s+|[;\n\r]+|\s[–—-]\s|,?\s+(?:but|however|although|though|except(?: that)?|yet|whereas|because)\s+"
    r"|,\s+(?:and|so|which)\s+",
    re.IGNORECASE,
)

_RUN = (
    r"(?:unit |integration |e2e |regression |existing |new |all |some |many )*"
    r"(?:tests?|test ?cases?|test suites?|suites?|specs|checks?|builds?|compilation|compiler|lint(?:er|ing)?"
    r"|ci|type ?check(?:er|ing|s)?|mypy|pytest|jest|tox|cargo|npm|make|tsc|eslint|ruff|assertions?"
    r"|migrations?|install(?:ation)?|import)"
)
_FAILS = r"(?:fail(?:s|ed|ing|ures?)?|broken|breaks?|red|crash(?:es|ed|ing)?|error(?:s|ed)?|hangs?)"
_FAILURE = re.compile(
    rf"""
      \b(?:crash(?:es|ed|ing)? | seg(?:mentation[ ]|-)?faults?(?:ed|s)? | core[ ]dump(?:s|ed)? | panics? | panicked
        | deadlock(?:s|ed)? | hangs | hung | is[ ]hanging | oom[- ]?kill(?:ed|s)? | (?:ran|runs|running)[ ]out[ ]of[ ]memory
        | tracebacks? | stack[ ]?traces? | (?:unhandled|uncaught)[ ](?:\w+[ ])?(?:exceptions?|errors?|rejections?)
        | fatal[ ]error | sig(?:segv|abrt|bus|kill) | killed[ ]by[ ]signal )\b
    | \b{_RUN}\b(?:\s+[\w`'"./:()-]+){{0,6}}?\s+(?:still\s+|now\s+|currently\s+)?{_FAILS}\b
    | \b(?:fail(?:s|ed|ing)|broken|red)\s+(?:\w+\s+){{0,3}}?(?:tests?|test ?cases?|suites?|specs?|checks?|builds?)\b
    | \b(?!0\b)\d+\s*(?:/\s*\d+\s*)?(?:of\s+(?:the\s+)?\d+\s+)?(?:\w+\s+){{0,2}}?(?:fail(?:ed|ures?|ing|s)?|errors?)\b
    | \b{_RUN}\b(?:\s+\w+){{0,3}}?\s+(?:timed[ ]out|aborted|(?:is|are|was|were)\s+(?:red|not[ ]green))\b
    | \b(?:do|does|did|is|are|was|were|will|would)(?:\s+not|n['’]?t)\s+(?:yet\s+|currently\s+|fully\s+|all\s+|always\s+)*
        (?:work(?:ing)?\b | compil(?:e|ing)\b | build(?:ing)?\s*(?:$|[,.:]|yet\b|because\b)
          | pass(?:ing|ed)?\s*(?:$|[,.:)]|yet\b|because\b|on\b|in\b|any\s?more\b|tests?\b|the\s+tests?\b))
    | \b(?:could|can|was|were|am|is|are|did)\s*(?:not|n['’]?t)\s+(?:\w+ly\s+)?(?:able\s+to\s+|manage\s+to\s+)?
        (?:fix|resolve|solve|complete|finish|implement|install|compile|build|get\b.{{0,60}}\b(?:work|pass|run|compile)\w*)\b
    | \b(?:(?:could|can)\s*(?:not|n['’]?t)|(?:was|were|am|is|are|did)\s*(?:not|n['’]?t)\s+(?:\w+ly\s+)?(?:able|manage)\s+to)
        \s+(?:\w+ly\s+)?(?:able\s+to\s+|manage\s+to\s+)?(?:run|execute)\b
    | \bunable\s+to\s+(?:fix|resolve|solve|run|execute|complete|finish|implement|install|compile|build|get|make|pass)\b
    | \b(?:fail(?:s|ed|ing)?|failure)\s+to\s+(?:\w+ly\s+)?(?:build|compile|run|start|import|install|load|launch|boot
        |fix|resolve|pass|complete|finish|initiali[sz]e|connect|parse|execute|write|read|open|render|implement|merge|apply)\b
    | \b(?:unresolved|unfixed|unresolvable|unrecoverable|unsolved)\s+(?:\w+\s+){{0,2}}?
        (?:errors?|bugs?|crash(?:es)?|failures?|exceptions?|conflicts?|imports?|references?|symbols?|regressions?)\b
    | \b(?:errors?|bugs?|crash(?:es)?|failures?|exceptions?|conflicts?|regressions?|segfaults?)\s+(?:\w+\s+){{0,4}}?
        (?:unresolved|unresolvable|unfixed|remains?|persists?|not\s+(?:yet\s+)?(?:been\s+)?(?:fixed|resolved|solved)|still\s+(?:there|present|open|occurs?|happens?))\b
    | \b(?:still|remains?|keeps?|continues?\s+to)\s+(?:\w+\s+){{0,2}}?
        (?:crash(?:es|ing)?|fail(?:s|ing)?|broken|errors?|erroring|hang(?:s|ing)?|red|throw(?:s|ing)?|unresolved|unfixed)\b
    | \b(?:got|getting|get|hit|hitting|encounter(?:ed|ing|s)?|ran\s+into|running\s+into|runs\s+into|seeing|saw|ends?\s+(?:in|with)|ended\s+(?:in|with))
        \s+(?:an?|the|this|these|many|several|some|multiple|\d+)?\s*(?:[\w`'"/-]+\s+){{0,3}}?[\w.]*(?:errors?|exceptions?|tracebacks?|failures?)\b
    | \b(?:an?\s+)?(?:\w+\s+)?(?:error|exception)\s+(?:occur(?:s|red)|was\s+(?:thrown|raised)|is\s+(?:thrown|raised)\s+(?:at|on|during)\s+(?:start|boot|launch|import|build))
    | \b(?:exit(?:ed|s)?|returned|ended|finished)\s+(?:with\s+)?(?:a\s+)?(?:non-?zero|(?:exit\s+)?(?:code|status)\s+[1-9]\d*)\b
    | \bgave\s+up\b
    | ^\W*(?:still\s+)?(?:fails|crashes|hangs|segfaults|breaks|fail\s+(?:in|on|with|under|when|at|for))\b
    | \btest_\w+(?:\W+\w+){{0,2}}?\s+fail(?:s|ed|ing)?\b
    | (?-i:\bFAILED\b)
    | \b(?:could|can)\s*(?:not|n['’]?t)\s+be\s+(?:fixed|resolved|solved|run|executed|completed|finished|installed|compiled|built|verified)\b
    | \b(?:throws?|raises?)\s+(?:an?\s+)?\w*(?:error|exception)\s+(?:at|on|during)\s+(?:start\S*|boot|launch|import|exit|shutdown|every)\b
    | \bnot\s+(?:all|every)\s+(?:\w+\s+){{0,2}}?(?:tests?|checks?)\s+pass
    | \bonly\s+\d+\s*(?:of|/|out[ ]of)\s*(?:the\s+)?\d+\s+(?:\w+\s+)?(?:tests?|checks?)\s+pass
    | ^\W*(?:fatal|error|failed|failure)\s*[:!]
    | ^\W*(?:[\w.]+)?(?:error|exception):\s
    | \bnpm\s+err!
    | \bnot\s+(?:yet\s+)?(?:working|functional|compiling)\b
    | \b(?:is|are|was|remains?)\s+(?:still\s+|now\s+|currently\s+|completely\s+)?broken\b
    """,
    re.VERBOSE | re.IGNORECASE,
)
_FAILURE_START = re.compile(
    r"\d*\s*(?:fail|error|crash|broke|break|red\b|hang|traceback|stack|panic|dead|seg|exception)",
    re.IGNORECASE,
)
_NEGATED = re.compile(
    r"""(?:\b(?:no|not|never|without|zero|0|none|nothing|neither|nor|cannot|any|free\s+of|instead\s+of|rather\s+than|n['’]?t)\b
      |n['’]t\b)(?:\s+[\w/-]+){0,3}?\s*$""",
    re.VERBOSE | re.IGNORECASE,
)
_MENDED = re.compile(
    r"\b(?:fix(?:ed|es|ing)?|resolv(?:ed|es|ing)|solv(?:ed|es|ing)|handl(?:ed|es|ing)|prevent(?:ed|s|ing)?|avoid(?:ed|s|ing)?"
    r"|address(?:ed|es|ing)|correct(?:ed|s|ing)|eliminat(?:ed|es|ing)|repair(?:ed|s|ing)?|mend(?:ed|s|ing)?"
    r"|remov(?:ed|es|ing)|cur(?:ed|es)|recover(?:ed|s|ing)?|surviv(?:ed|es|ing|e)|guard(?:ed|s|ing)?|protect(?:ed|s|ing)?"
    r"|work(?:ed|s|ing)?\s+around|caught|catch(?:es)?|reproduc(?:ed|es|ing)|simulat(?:ed|es|ing)|diagnos\w+"
    r"|tolerat\w+|pin(?:ned|s)?|downgrad\w+|robust|gone|now\s+(?:pass(?:es)?|work(?:s)?|green|succeeds?|clean)|pass(?:es|ed)?\s+now|all\s+(?:pass|green))\b",
    re.IGNORECASE,
)
_NOT_MENDED = re.compile(
    r"""(?:\b(?:not|never|cannot|unable\s+to|fail(?:ed|s)?\s+to|tried\s+to|tries\s+to|attempt(?:ed|s|ing)?\s+to|trying\s+to
      |needs?\s+to|has\s+to|have\s+to|must|should|will|(?<!had\s)to|todo|be|before|until|left|needs?|pending|without|requires?)|n['’]t)
      (?:\s+(?:be|been|get|yet|being|fully|\w+ly))*\s*$""",
    re.VERBOSE | re.IGNORECASE,
)
_MAYBE = re.compile(
    r"\b(?:(?:could|would|can)(?!\s*n['’o])|might|may|what\s+happens|potential(?:ly)?|possibl[ey]|possibility|risks?|risky|theoretical(?:ly)?|in\s+case"
    r"|if\s+(?:ever|somebody|someone|anyone)|unlikely|hypothetical(?:ly)?|worr(?:y|ied)|should\s+(?:a|an|the|it|this)\b"
    r"|(?:spec|specification|plan|task|requirement|issue)\s+(?:says|wants|asks|states)|consider|suggest|recommend|idea|future|would\s+be|chance)\b",
    re.IGNORECASE,
)
_ONCE = re.compile(
    r"\b(?:previously|used\s+to|formerly|originally|initially|at\s+first|first|earlier|before|no\s+longer|had\s+been"
    r"|original|reported|old|former|earlier|pre-fix|until\s+now)\b",
    re.IGNORECASE,
)
_ARTICLES = r"(?:\s+(?:an?|the|any|every|each|all|its|their|such|deliberate(?:ly)?|intentional(?:ly)?|expected|clear|possible))*\s*$"
_ABOUT_ALWAYS = re.compile(
    r"\b(?:when|whenever|whether|how|tests?\s+that|verif(?:y|ies|ied)(?:\s+that)?|checks?\s+that|detects?|message|label|text)"
    + _ARTICLES,
    re.IGNORECASE,
)
_ABOUT_A_NAME = re.compile(
    r"""\b(?:for|of|on|covers?|covering|covered|handles?|about|detecting|reports?|expect(?:s|ed)?|checks?|checking|that|documented?
      |explains?|describes?|logs?|logged|shows?|prints?|displays?|returns?|raises?|throws?|messages|titled|called|named
      |retries|retry|after|against|upon)"""
    + _ARTICLES,
    re.VERBOSE | re.IGNORECASE,
)
_ABOUT_AFTER = re.compile(
    r"""\s*-?(?:report(?:er|ing|s)?|handl(?:er|ers|ing)|recovery|messages?|pages?|codes?|class(?:es)?|types?|paths?|boundar(?:y|ies)|loop
      |dumps?\s+(?:are|is)\s+(?:now\s+)?(?:written|saved|kept)|prone|cases?|modes?|logs?|logging|banners?|states?|rates?|scenarios?|budgets?|safe|free|resistant|tests?\s+(?:pass|are|were|added)
      |tolerance|injection|detection|counters?|metrics?|screens?|fast\b|over\b|closed\b|open\b|safe\b|back\b|(?:is|are)\s+(?:retried|reported|logged|shown|listed|named)|logins?|requests?|jobs?|payments?|uploads?|attempts?|deliveries|transactions?|responses?|orders?)""",
    re.VERBOSE | re.IGNORECASE,
)
_FAILURE_KEY = re.compile(
    r"(?:^|_)(?:crash(?:es|ed)?|errors?|failed|failures?|failing|exceptions?|tracebacks?"
    r"|(?:failed|failing|red|broken)_(?:tests?|checks?|builds?)|(?:tests?|checks?|builds?)_(?:failed|failing|red|broken))$"
)
_MENDED_KEY = re.compile(
    r"(?:^|_)(?:fixed|resolved|handled|prior|previous|expected|potential|possible|past|old|no)_"
)
_BAD_STATES = frozenset(
    {
        "failed",
        "failure",
        "fail",
        "error",
        "errored",
        "crashed",
        "broken",
        "red",
        "aborted",
        "not working",
    }
)
_NO_FAILURE = re.compile(
    r"\W*(?:no|none|n/?a|nothing|nil|not applicable|never|zero|0|false|null)\b.*",
    re.IGNORECASE | re.DOTALL,
)
_STATE_KEY = re.compile(r"(?:^|_)(?:status|state|result|outcome|tests?|checks?|build)$")


def reported_failure(feedback: object) -> str | None:
    """The words in the feedback that report a crash, failing tests or an error that is not resolved."""
    read = 0
    for count, (key, value) in enumerate(_values(feedback)):
        if count >= _MAX_VALUES or read > _MAX_READ:
            break
        if report := _reported_by_key(key, value):
            return report
        if isinstance(value, str):
            text = value[: _MAX_READ - read + 1]
            read += len(text)
            if report := _reported_in(text):
                return report
    return None


def _values(feedback: object) -> Iterator[tuple[str, object]]:
    """Every plain value with the key it stands under."""
    waiting: list[tuple[str, object]] = [("", feedback)]
    while waiting:
        key, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [(_key(name), item) for name, item in reversed(value.items())]
        elif isinstance(value, list | tuple):
            waiting += [(key, item) for item in reversed(value)]
        else:
            yield key, value


def _key(name: object) -> str:
    spread = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(name)[:100])
    return re.sub(r"\W+", "_", spread).casefold()


def _reported_by_key(key: str, value: object) -> str | None:
    """`{"failed_tests": 3}` and `{"crash": "in the parser"}` say it by their names."""
    report = f"{key}: {one_line(str(value), _MAX_REPORT_CHARACTERS)}"
    if isinstance(value, str):
        state = value.strip(" .!").casefold()
        if _STATE_KEY.search(key) and state in _BAD_STATES:
            return report
        return report if _names_failure(key) and value.strip() and not _is_none(value) else None
    counted = isinstance(value, bool | int | float) and bool(value)
    return report if counted and _names_failure(key) else None


def _names_failure(key: str) -> bool:
    return _FAILURE_KEY.search(key) is not None and _MENDED_KEY.search(key) is None


def _is_none(value: str) -> bool:
    excused = _NO_FAILURE.fullmatch(value) or _MAYBE.search(value) or _is_mended(value)
    return bool(excused)


def _reported_in(text: str) -> str | None:
    for clause in _CLAUSE_END.split(text.replace("`", "")):
        # Long clauses are no prose; what they begin and end with is enough.
        parts = [clause] if len(clause) <= _MAX_CLAUSE else [clause[:300], clause[-300:]]
        for part in parts:
            if _reports(part):
                return one_line(part, _MAX_REPORT_CHARACTERS)
    return None


def _reports(clause: str) -> bool:
    return any(
        not _is_excused(clause, match.start(), match.end()) for match in _FAILURE.finditer(clause)
    )


def _is_excused(clause: str, start: int, end: int) -> bool:
    before, after = clause[:start], clause[end:]
    lead, _, last = clause[start:end].rpartition(" ")
    if _ABOUT_AFTER.match(after) or _is_turned(before) or _is_mended(clause):
        return True
    if _FAILURE_START.match(clause, start) and _ABOUT_A_NAME.search(before):
        return True
    # `tests pass without errors`, `tests for failed logins`: what counts stands before the last word.
    return _FAILURE_START.match(last) is not None and bool(
        _NEGATED.search(lead) or _ABOUT_A_NAME.search(lead)
    )


def _is_turned(before: str) -> bool:
    """True when the text before negates it, or puts it in the past or in doubt."""
    kinds = (_NEGATED, _ABOUT_ALWAYS, _MAYBE, _ONCE)
    return any(kind.search(before) for kind in kinds)


def _is_mended(clause: str) -> bool:
    return any(
        not _NOT_MENDED.search(clause[: match.start()]) for match in _MENDED.finditer(clause)
    )
