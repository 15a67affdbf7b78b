"""Tests of files in languages other than Python, read by bounded text patterns: blocks of tests, assertions, marks."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import PurePosixPath

MAX_CHARACTERS = 1_000_000
_STRING = r'"(?:[^"\\\n]|\\.)*"' r"|'(?:[^'\\\n]|\\.)*'"


@dataclass(frozen=True)
class Language:
    """Patterns of one family of languages. The first group of `test` is a test's name."""

    test: re.Pattern[str]
    skip: re.Pattern[str]
    """Marks by which tests are left out, or only some are run."""
    assertion: re.Pattern[str]
    weak: re.Pattern[str]
    """Assertions that only say that there is a value."""
    empty: re.Pattern[str]
    """Assertions that always hold."""
    comments: re.Pattern[str]
    files: re.Pattern[str]
    """Names of test files."""


_C_COMMENTS = re.compile(rf"(?P<keep>{_STRING}|`(?:[^`\\]|\\.)*`)|//[^\n]*|/\*.*?\*/", re.DOTALL)
_RUBY_COMMENTS = re.compile(rf"(?P<keep>{_STRING})|\#(?!\{{)[^\n]*")
_QUOTED = r"""\(?\s*(?P<q>['"`])(?P<name>(?:(?!(?P=q))[^\n\\]|\\.){0,300})(?P=q)"""

_SCRIPT = Language(
    test=re.compile(
        rf"\b(?:it|test|specify)(?:\.(?:each|concurrent|only|failing|skip|todo)\b(?:\([^()\n]{{0,300}}\))?)*{_QUOTED}"
    ),
    skip=re.compile(
        r"\b(?:it|test|describe|context|suite|specify)(?:\.\w+)*\.(?:skip|only|todo|fixme|failing|fails|skipIf|runIf)\b"
        r"|\b(?:xit|xtest|xdescribe|xcontext|xspecify|fit|fdescribe|ftest)\s*\(|\bthis\.skip\(|\bt\.(?:skip|todo)\(|\bskip\s*:\s*(?!false)\S+"
    ),
    assertion=re.compile(
        r"\bexpect\s*\(|\bassert(?:\.\w+)*\s*\(|\.should\b|\bshould\.|\bt\.(?:is|deepEqual|true|false|equal|ok|throws|same|like)\b|\.expect\("
    ),
    weak=re.compile(
        r"\.(?:toBeTruthy|toBeDefined|toBeFalsy|toBeInstanceOf)\(|\bassert(?:\.ok)?\s*\(|\.to\.(?:exist|be\.ok)\b|\.not\.(?:toBeNull|toBeUndefined|toThrow)\(|expect\.anything\("
    ),
    empty=re.compile(
        r"expect\(\s*(?P<v>true|false|1|0|null|undefined|'[^']*'|\"[^\"]*\")\s*\)\s*\.\s*(?:toBe|toEqual|toStrictEqual)\(\s*(?P=v)\s*\)"
        r"|expect\(\s*(?:true|1)\s*\)\s*\.\s*(?:toBeTruthy|toBeDefined|to\.be\.ok)|\bassert(?:\.ok)?\(\s*(?:true|1)\s*[,)]|assert\.(?:strictEqual|equal|deepEqual)\(\s*(?P<w>[\w.]+)\s*,\s*(?P=w)\s*[,)]"
    ),
    comments=_C_COMMENTS,
    files=re.compile(
        r"(?:^|/)(?:__tests__|tests?|specs?|e2e|cypress)/|[._-](?:test|spec|cy)\.\w+$|(?:^|/)(?:test|spec)\.\w+$"
    ),
)
_GO = Language(
    test=re.compile(r"^func\s+(?P<name>(?:Test|Benchmark|Fuzz|Example)\w*)\s*\(", re.MULTILINE),
    skip=re.compile(
        r"\b[tbf]\.(?:Skip|Skipf|SkipNow)\(|testing\.Short\(\)|^//go:build\b.*$|^// \+build\b.*$",
        re.MULTILINE,
    ),
    assertion=re.compile(
        r"\b[tbf]\.(?:Error|Errorf|Fatal|Fatalf|Fail|FailNow)\(|\b(?:assert|require|is|qt|cmp)\.\w+\("
    ),
    weak=re.compile(r"\b(?:assert|require)\.(?:NotNil|NotEmpty|True|NoError|Error)\("),
    empty=re.compile(
        r"\b(?:assert|require)\.True\(\s*t\s*,\s*true\s*[,)]|\b(?:assert|require)\.Equal\(\s*t\s*,\s*(?P<v>[\w.]+)\s*,\s*(?P=v)\s*[,)]"
    ),
    comments=re.compile(
        rf"(?P<keep>{_STRING}|`[^`]*`|^//go:build\b[^\n]*|^// \+build\b[^\n]*)|//[^\n]*|/\*.*?\*/",
        re.DOTALL | re.MULTILINE,
    ),
    files=re.compile(r"_test\.go$"),
)
_RUST = Language(
    test=re.compile(
        r"#\[(?:\w+::)*test\b[^\]]*\]\s*(?:#\[[^\]]*\]\s*)*(?:pub\s+)?(?:async\s+)?fn\s+(?P<name>\w+)"
    ),
    skip=re.compile(
        r"#\[ignore\b[^\]]*\]|#\[should_panic\b[^\]]*\]|#\[cfg\((?!test\))[^\]]*\]|#\[cfg_attr\([^\]]*ignore[^\]]*\]"
    ),
    assertion=re.compile(r"\b(?:debug_)?assert\w*!\s*\(|\bpanic!\s*\(|\bunreachable!\s*\("),
    weak=re.compile(
        r"\bassert!\s*\([^=<>]*?\.is_(?:some|ok|err|none)\(\)\s*[,)]|\bassert_ne!\s*\("
    ),
    empty=re.compile(
        r"\bassert!\(\s*true\s*[,)]|\bassert_eq!\(\s*(?P<v>[\w.]+)\s*,\s*(?P=v)\s*[,)]"
    ),
    comments=re.compile(r'(?P<keep>"(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL),
    files=re.compile(r"\.rs$"),
)
_JVM = Language(
    test=re.compile(
        r"(?:@(?:Test|ParameterizedTest|RepeatedTest|TestFactory)\b(?:\([^)]*\))?|\[(?:Fact|Theory|Test|TestMethod|TestCase)\b[^\]]*\])"
        r"(?:(?!@Test\b|\[Fact|\[Test|\{).){0,600}?\b(?:fun|void|Task|[\w<>]+)\s+`?(?P<name>[\w ]+)`?\s*\(",
        re.DOTALL,
    ),
    skip=re.compile(
        r"@(?:Disabled|Ignore|IgnoreIf|DisabledIf|DisabledOn\w+|EnabledIf\w*|EnabledOn\w+)\b|\[(?:Ignore|Explicit)\b|\bSkip\s*=\s*\"|\bassume\w*\(|\bAssert\.(?:Ignore|Inconclusive)\("
    ),
    assertion=re.compile(
        r"\b[Aa]ssert\w*(?:\.\w+)?\s*\(|\bverify\w*\s*\(|\.Should\(\)|\bfail\s*\(|\bshould\w*\s*\("
    ),
    weak=re.compile(
        r"\bassert(?:NotNull|True|False|NotEquals|DoesNotThrow)\s*\(|\bAssert\.(?:NotNull|IsNotNull|True|IsTrue|False|NotEqual)\("
    ),
    empty=re.compile(
        r"\bassertTrue\(\s*true\s*[,)]|\bAssert\.(?:True|IsTrue)\(\s*true\s*[,)]|\bassertEquals\(\s*(?P<v>[\w.]+)\s*,\s*(?P=v)\s*[,)]"
    ),
    comments=_C_COMMENTS,
    files=re.compile(
        r"(?:^|/)(?:tests?|androidTest)/|(?:Tests?|Spec|IT)\.\w+$|(?:^|/)Test\w+\.\w+$",
        re.IGNORECASE,
    ),
)
_RUBY = Language(
    test=re.compile(
        rf"^\s*(?:it|specify|scenario|test){_QUOTED}|^\s*def\s+(?P<name2>test_\w+)", re.MULTILINE
    ),
    skip=re.compile(
        r"\b(?:xit|xdescribe|xcontext|xspecify|fit|fdescribe|fcontext)\b|^\s*(?:skip|pending)\b|\b(?:skip|pending|focus):|,\s*:(?:skip|pending|focus)\b",
        re.MULTILINE,
    ),
    assertion=re.compile(
        r"\bexpect\b|\bassert\w*|\brefute\w*|\.should\b|\bis_expected\b|\bmust_\w+|\bflunk\b"
    ),
    weak=re.compile(
        r"\bassert(?:_not_nil)?\s|\bassert_instance_of|\bbe_(?:truthy|present)\b|\bnot_to be_nil\b|\bbe_a\b"
    ),
    empty=re.compile(
        r"\bassert\s*\(?\s*true\b|expect\(\s*true\s*\)\.to\s+(?:be|eq)\W+true|\bassert_equal\(?\s*(?P<v>[\w.]+)\s*,\s*(?P=v)\b"
    ),
    comments=_RUBY_COMMENTS,
    files=re.compile(r"(?:^|/)(?:tests?|spec)/|_(?:test|spec)\.rb$"),
)
_PHP = Language(
    test=re.compile(
        rf"\bfunction\s+(?P<name2>test\w+)\s*\(|(?:@test\b|\#\[Test\]).{{0,200}}?function\s+(?P<name3>\w+)|^\s*(?:it|test){_QUOTED}",
        re.MULTILINE | re.DOTALL,
    ),
    skip=re.compile(
        r"\bmarkTest(?:Skipped|Incomplete)\(|->(?:skip|todo|only)\(|@(?:group\s+ignore|requires)\b|\#\[Requires"
    ),
    assertion=re.compile(r"\bassert\w*\s*\(|\bexpect\w*\s*\(|->fail\("),
    weak=re.compile(r"\bassert(?:NotNull|True|NotEmpty|InstanceOf|IsArray)\s*\("),
    empty=re.compile(
        r"\bassertTrue\(\s*true\s*[,)]|\bassert(?:Same|Equals)\(\s*(?P<v>[\w$]+)\s*,\s*(?P=v)\s*[,)]"
    ),
    comments=re.compile(rf"(?P<keep>{_STRING})|//[^\n]*|/\*(?!\*\s*@test).*?\*/", re.DOTALL),
    files=re.compile(r"(?:^|/)tests?/|Test\.php$", re.IGNORECASE),
)
_BY_SUFFIX = {
    **dict.fromkeys((".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts", ".vue", ".coffee"), _SCRIPT),
    ".go": _GO,
    ".rs": _RUST,
    **dict.fromkeys((".java", ".kt", ".kts", ".scala", ".groovy", ".cs"), _JVM),
    ".rb": _RUBY,
    ".php": _PHP,
}  # fmt: skip
SUFFIXES = frozenset(_BY_SUFFIX)


@dataclass(frozen=True)
class TextTest:
    """A test as its text has it."""

    name: str
    line: int
    assertions: int
    weak: int
    empty: int
    words: Counter[str]
    returns_early: bool = False

    @property
    def strong(self) -> int:
        return self.assertions - self.weak - self.empty


@dataclass(frozen=True)
class TextFile:
    tests: tuple[TextTest, ...]
    marks: tuple[tuple[int, str], ...]
    """Line and text of each."""
    assertions: int
    cleaned: str
    mocked: frozenset[str] = frozenset()
    """Modules of the project that it replaces by mocks."""


def language_of(path: str) -> Language | None:
    return _BY_SUFFIX.get(PurePosixPath(path).suffix.lower())


def is_textual_test(path: str) -> bool:
    """Tell by its name whether a file of another language than Python may hold tests."""
    language = language_of(path)
    return language is not None and language.files.search(path) is not None


def without_comments(language: Language, text: str) -> str:
    """The text with comments blanked out, on the same lines."""

    def blank(match: re.Match[str]) -> str:
        return match[0] if match["keep"] is not None else re.sub(r"[^\n]", " ", match[0])

    return language.comments.sub(blank, text[:MAX_CHARACTERS])


def read_text_file(path: str, text: str) -> TextFile:
    """Read the tests of a file that is not Python."""
    language = _BY_SUFFIX[PurePosixPath(path).suffix.lower()]
    cleaned = without_comments(language, text)
    starts = list(language.test.finditer(cleaned))
    ends = [*(match.start() for match in starts[1:]), len(cleaned)][: len(starts)]
    tests = []
    line, at = 1, 0
    for match, end in zip(starts, ends, strict=True):
        line, at = line + cleaned.count("\n", at, match.start()), match.start()
        space = match[0][: len(match[0]) - len(match[0].lstrip())]
        own_line = line + space.count("\n")
        name = next(
            value
            for key, value in match.groupdict().items()
            if key.startswith("name") and value is not None
        )
        tests.append(
            _test(
                language, name, own_line, cleaned[match.start() : end], match.end() - match.start()
            )
        )
    marks = tuple(
        (cleaned.count("\n", 0, match.start()) + 1, " ".join(match[0].split()).rstrip("( "))
        for match in language.skip.finditer(cleaned)
    )
    mocked = frozenset(_MOCKED.findall(cleaned))
    return TextFile(tuple(tests), marks, len(language.assertion.findall(cleaned)), cleaned, mocked)


_MOCKED = re.compile(r"\b(?:jest|vi)\.(?:do)?[mM]ock\(\s*['\"`](\.[^'\"`\n]{1,200})")
_WORD = re.compile(r"\w{2,}")
_RETURN_FIRST = re.compile(r"(?:=>|\)|function[^{]*)\s*(?:\w+\s+)?\{\s*return\s*;?\s*\n")


def _test(language: Language, name: str, line: int, body: str, head: int) -> TextTest:
    assertions = len(language.assertion.findall(body))
    empty = sum(1 for _ in language.empty.finditer(body))
    weak = min(sum(1 for _ in language.weak.finditer(body)), assertions - min(empty, assertions))
    return TextTest(
        name=name,
        line=line,
        assertions=assertions,
        weak=weak,
        empty=min(empty, assertions),
        words=Counter(_WORD.findall(body[:20_000])),
        returns_early=_RETURN_FIRST.search(body[head : head + 200]) is not None,
    )
