"""Every error Podium raises on purpose, cut by who must act.

PodiumError
├── UserMustAct              the person at the door: input, files, settings, machine
│   ├── BadInput                 exit 2
│   │   ├── UnknownId            no such run, approval, receipt
│   │   ├── AmbiguousId          a short form that fits several
│   │   ├── ConfigInvalid        file, line, key
│   │   ├── PackInvalid          a tool pack: file and JSON pointer of every fault
│   │   └── FlowUnknown          a run of a flow this Podium does not have
│   ├── StoreUnusable            the database file
│   │   ├── StoreCorrupt
│   │   ├── StoreReadOnly
│   │   ├── StoreFull
│   │   ├── StoreNewer           made by a newer Podium
│   │   └── StoreForeign         not ours at all
│   ├── ToolMissing              a program this needs is not installed
│   ├── AgentNotLoggedIn         its key or login is missing, wrong or too old
│   ├── LockHeld                 exit 7: another process has it
│   ├── SetUpFailed              a project's own set-up command, with the end of its output
│   └── NotPossibleNow           the thing is in a state that does not allow this
│       └── ApprovalClosed       exit 4: its run ended before anybody answered
├── AgentMustAct             shown to the agent in words it can use; the turn goes on
│   ├── CallRefused              exit 4
│   ├── UnknownTool
│   ├── BadArguments
│   ├── ToolBroke                the tool ran and failed
│   │   └── OutcomeUnknown       nobody can say whether it did what it was asked for
│   └── ReplyInvalid             no payload that fits its contract
├── RunMustStop              this run ends or pauses here
│   ├── BudgetSpent              exit 5
│   ├── TimedOut                 exit 6
│   ├── ContextOverflow          the conversation is too long for the model
│   ├── AgentRefused             the model will not do this
│   ├── AgentRejected            its provider finds the request itself wrong
│   ├── NeedsHuman               exit 3
│   │   └── CallInDoubt          a crash between act and record
│   ├── FlowChanged              the record does not fit today's flow code
│   ├── PlanRejected             exit 4: no plan can be made of what is wished for
│   ├── PlanNotGated             exit 4: a plan that the quality gate did not let pass
│   ├── PlanFailed               a call of a plan failed, and the rest was not begun
│   ├── PlaybookNotMet           a success criterion of a playbook is not met
│   ├── PlaybookStopped          exit 5 or 6: a limit ended the agent before its work was proved
│   └── StepFailed               a recorded failure, raised again on replay
└── Passing                  nobody yet: resume is safe
    ├── StoreBusy
    ├── LeaseLost                another process owns the run now
    ├── AgentLost                the agent's process or line went away
    │   └── AgentUnavailable     its provider is down or out of reach
    ├── BridgeUnusable           a folder of inbox or outbox cannot be used now
    ├── ForgeUnavailable         the forge is down or out of reach
    ├── RateLimited              too much was asked of it; `retry_at` says until when
    └── Interrupted              exit 130
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podium.core.decisions import Usage
    from podium.core.workspaces import GuardedChange


class PodiumError(Exception):
    """The root. `exit_code` is what a door ends with when nobody answers it."""

    exit_code: int = 1

    usage: Usage | None = None
    """Usage without an answer, where that is known."""


class UserMustAct(PodiumError):
    """The person at the door has to change something."""


class BadInput(UserMustAct):
    """Something typed or handed in cannot be used."""

    exit_code = 2


_LISTED_BY = {"workspace": "podium workspaces list"}
"""Commands that list a kind of thing, where that is not `podium <kind>s`."""


class UnknownId(BadInput):
    """Nothing has this id."""

    def __init__(self, kind: str, identifier: str) -> None:
        command = _LISTED_BY.get(kind, f"podium {kind}s")
        super().__init__(f"no {kind} {identifier!r}; list them with `{command}`")
        self.kind = kind
        self.identifier = identifier


class AmbiguousId(BadInput):
    """A short form fits several things."""

    def __init__(self, kind: str, identifier: str, candidates: Sequence[str]) -> None:
        first_ten = ", ".join(candidates[:10])
        super().__init__(
            f"{identifier!r} matches {len(candidates)} {kind}s: {first_ten}; type more of the id"
        )
        self.kind = kind
        self.identifier = identifier
        self.candidates = tuple(candidates)


class ConfigInvalid(BadInput):
    """A file cannot be used. Names file, line and key of every fault at once."""

    def __init__(self, file: str, problems: Sequence[ConfigProblem]) -> None:
        super().__init__("\n".join(problem.sentence(file) for problem in problems))
        self.file = file
        self.problems = tuple(problems)


class ConfigProblem:
    """One thing wrong in a file: where, which key, what to do."""

    def __init__(
        self, problem: str, *, line: int | None = None, column: int | None = None, key: str = ""
    ) -> None:
        self.problem = problem
        self.line = line
        self.column = column
        self.key = key

    def sentence(self, file: str) -> str:
        location = file if self.line is None else f"{file}:{self.line}"
        if self.column is not None:
            location = f"{location}:{self.column}"
        return (
            f"{location}: {self.key}: {self.problem}" if self.key else f"{location}: {self.problem}"
        )


class PackProblem:
    """One thing wrong in a pack: in which file, where in it, what to do."""

    def __init__(self, file: str, pointer: str, problem: str, line: int | None = None) -> None:
        self.file = file
        self.pointer = pointer
        """JSON pointer, such as `/tools/3/tier`. Empty: the file as a whole."""
        self.problem = problem
        self.line = line

    def __str__(self) -> str:
        location = self.file if self.line is None else f"{self.file}:{self.line}"
        return ": ".join(part for part in (location, self.pointer, self.problem) if part)


class PackInvalid(BadInput):
    """A pack cannot be used. Names every fault at once; nothing of it was loaded."""

    def __init__(self, problems: Sequence[PackProblem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = tuple(problems)


class FlowUnknown(BadInput):
    """No flow is registered under this name."""

    def __init__(self, flow: str, flows: Sequence[str]) -> None:
        super().__init__(f"no flow {flow!r}; known flows: {', '.join(flows) or 'none'}")
        self.flow = flow


class StoreUnusable(UserMustAct):
    """The database cannot be used as it is. Nothing in it was changed."""

    def __init__(self, path: str, problem: str, remedy: str) -> None:
        super().__init__(f"{path}: {problem}; {remedy}")
        self.path = path


class StoreCorrupt(StoreUnusable):
    """SQLite cannot read the file."""


class StoreReadOnly(StoreUnusable):
    """The file or its folder may not be written."""


NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
"""Error numbers of a full disk, or of a user's full share of it."""


class StoreFull(StoreUnusable):
    """The disk is full. What was being written is not in the file; all before it is."""


class StoreNewer(StoreUnusable):
    """A newer Podium made this file."""


class RecordLost(StoreUnusable):
    """The database is missing, empty or rolled back although receipts were sealed for what it held."""


class StoreForeign(StoreUnusable):
    """The file is a database of some other program."""


class ToolMissing(UserMustAct):
    """A program or package is needed and not there."""


class AgentNotLoggedIn(UserMustAct):
    """The agent's key or login is missing, wrong or too old. The message says how to log in."""


class LockHeld(UserMustAct):
    """Another process holds what this one asked for."""

    exit_code = 7


class SetUpFailed(UserMustAct):
    """A command that sets a project's workspace up failed. The workspace was not made."""

    def __init__(self, message: str, output: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.output = tuple(output)


class NotPossibleNow(UserMustAct):
    """The thing exists but its state does not allow this."""


class ApprovalClosed(NotPossibleNow):
    """An answer to an approval whose run ended first: nothing would come of it."""

    exit_code = 4


class NoSandbox(NotPossibleNow):
    """This machine cannot confine what an agent starts, and nobody said that it may go without."""

    exit_code = 4


class AgentMustAct(PodiumError):
    """Told to the agent, which may try something else."""


class CallRefused(AgentMustAct):
    """The gate said no, or not yet."""

    exit_code = 4


class UnknownTool(AgentMustAct):
    """No tool has this name."""

    exit_code = 2

    def __init__(self, tool: str, tools: Sequence[str]) -> None:
        super().__init__(f"there is no tool {tool!r}; tools: {', '.join(sorted(tools))}")
        self.tool = tool


class BadArguments(AgentMustAct):
    """The arguments do not fit the tool's schema."""

    exit_code = 2

    def __init__(self, tool: str, problems: Sequence[str], shape: str = "") -> None:
        """`shape` tells whoever uses the tool by its own name what it takes, with an example."""
        super().__init__(f"invalid arguments for {tool!r}: {'; '.join(problems)}")
        self.tool = tool
        self.problems = tuple(problems)
        self.shape = shape


class ToolBroke(AgentMustAct):
    """The tool was performed and failed. The receipt says so too."""


class OutcomeUnknown(ToolBroke):
    """The line broke after the wish was sent. Unless the tool is idempotent the call is in doubt."""


class ReplyInvalid(AgentMustAct):
    """The reply holds no payload that fits its contract. The message can be quoted to the agent."""


class ImportRefused(AgentMustAct):
    """Commits of a workspace are not what may come back. Nothing was changed."""

    exit_code = 4


HARMLESS_REMEDY = "if the value of a variable is not a secret, a person can add the variable to `not_secret:` in their own config.yaml"


class SecretsCommitted(ImportRefused):
    """Commits hold a secret, or more than can be scanned. The message names where, and never the secret."""

    def __init__(self, finding: str, remedy: str) -> None:
        super().__init__(
            f"{finding}; {remedy}, and rewrite the commits from the one before "
            "(`git reset --soft`), so that no commit contains it"
        )
        self.finding = finding
        self.remedy = remedy


class GuardedFilesChanged(ImportRefused):
    """Commits change files that guard the project or run by themselves, and nobody has approved that."""

    exit_code = 3

    def __init__(self, change: GuardedChange) -> None:
        super().__init__(
            f"the commits change {', '.join(change.files)}: changes to files that guard the project or run by "
            "themselves are delivered only after a person has approved them"
        )
        self.change = change


class RunMustStop(PodiumError):
    """This run ends or pauses here."""


class BudgetSpent(RunMustStop):
    """A limit on money, tokens, turns or time is reached before the next step."""

    exit_code = 5

    def __init__(
        self,
        message: str,
        *,
        scope: str = "",
        measure: str = "",
        used: float = 0.0,
        limit: float = 0.0,
    ) -> None:
        super().__init__(message)
        self.scope = scope
        self.measure = measure
        self.used = used
        self.limit = limit


class TimedOut(RunMustStop):
    """A deadline passed."""

    exit_code = 6


class ContextOverflow(RunMustStop):
    """The conversation is longer than the model can read."""


class AgentRefused(RunMustStop):
    """The model itself will not do what it was asked. The gate has no part in it."""

    exit_code = 4


class AgentRejected(RunMustStop):
    """The agent's program or provider finds the request itself wrong: an unknown model, a bad flag."""


class NeedsHuman(RunMustStop):
    """Only a person can say how this goes on. The message names what is needed."""

    exit_code = 3


class CallInDoubt(NeedsHuman):
    """A crash fell between the act and its record, and the tool is not idempotent."""

    def __init__(self, call_key: str, tool: str) -> None:
        super().__init__(
            f"it is not known whether {tool!r} happened (call {call_key}); check, then run "
            f"`podium resolve {call_key} --happened` or `--not-happened`"
        )
        self.call_key = call_key
        self.tool = tool


class WorkspaceTampered(RunMustStop):
    """Something in a workspace is not what it was made as; nothing runs there until a person looked."""

    exit_code = 4


class FlowChanged(RunMustStop):
    """The record does not fit the flow's code of today."""


class PlanRejected(RunMustStop):
    """No plan can be made of what is wished for."""

    exit_code = 4


class PlanNotGated(RunMustStop):
    """Somebody wanted calls performed whose plan the quality gate did not let pass."""

    exit_code = 4


class PlanFailed(RunMustStop):
    """A call of a plan failed. What came before it is done; the rest was not begun."""


class PlaybookNotMet(RunMustStop):
    """The agent ended, and a command that decides about success failed."""


class PlaybookStopped(RunMustStop):
    """A limit ended the agent, and what it had achieved by then is not all that was wanted."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class StepFailed(RunMustStop):
    """A step's recorded failure. `kind` is the class that was raised first."""

    def __init__(self, step: str, kind: str, message: str, exit_code: int = 1) -> None:
        super().__init__(f"step {step!r} failed: {message}")
        self.step = step
        self.kind = kind
        self.message = message
        self.exit_code = exit_code


class Passing(PodiumError):
    """Nobody has to act. The record is whole; resume is safe.

    `retry_at` is when it is worth trying again, if that is known.
    """

    retry_at: datetime | None = None


class StoreBusy(Passing):
    """Another process held the database for too long."""


class StoreAway(Passing):
    """The database cannot be reached just now."""


class LeaseLost(Passing):
    """Another process owns the run now; this one must not write for it."""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"run {run_id} is now owned by another process")
        self.run_id = run_id


class AgentLost(Passing):
    """The agent's process or connection ended without an answer."""


class AgentUnavailable(AgentLost):
    """The agent's provider is down, overloaded or out of reach."""


class BridgeUnusable(Passing):
    """A folder of inbox or outbox cannot be used now; what was done is answered when it can."""


class ForgeUnavailable(Passing):
    """The forge, or the way to it, is down: nothing was settled there."""


class RateLimited(Passing):
    """An agent or forge was asked too much in too short a time, or its quota is used up."""

    def __init__(self, message: str, retry_at: datetime | None = None) -> None:
        super().__init__(message)
        self.retry_at = retry_at


class Interrupted(Passing):
    """The person pressed Ctrl-C or the process was asked to end."""

    exit_code = 130
