"""What every door offers beside starting a flow: list, show, follow, answer, end, go on, prove."""

from podium.usecases.approve import approve
from podium.usecases.cancel import cancel
from podium.usecases.check_policy import check_policy
from podium.usecases.continuation import Continuation, how_it_continues, left_alone
from podium.usecases.deploy import deliver, say_yes_to_candidate
from podium.usecases.find_candidate import (
    CANDIDATE,
    approval_meant,
    candidate_runs,
    find_candidate,
    wo_id_of,
)
from podium.usecases.find_id import find_call_key, find_id
from podium.usecases.find_receipt import find_undoable
from podium.usecases.follow_logs import follow_logs
from podium.usecases.list_approvals import (
    NewestApprovals,
    list_approvals,
    newest_approvals,
    show_approval,
)
from podium.usecases.list_candidates import (
    CandidateSeen,
    answer_to,
    list_candidates,
    show_candidate,
)
from podium.usecases.list_receipts import follow_receipts, list_receipts
from podium.usecases.list_runs import (
    INTERRUPTED,
    ShownStatus,
    Standing,
    how_they_stand,
    list_runs,
    list_standings,
)
from podium.usecases.promote import Promotion, demote, plan_promotion, promote
from podium.usecases.prune import Pruned, prune
from podium.usecases.reject import reject
from podium.usecases.resolve import resolve_call
from podium.usecases.resubmit import Resubmitted, resubmit
from podium.usecases.resume import resume, see_through
from podium.usecases.retry import retry
from podium.usecases.see_collisions import RunsCollide, see_collisions
from podium.usecases.see_duets import DuetTask, find_duet, see_duets, with_hosts
from podium.usecases.see_inbox import Answer, Blocked, Card, CardKind, Inbox, see_card, see_inbox
from podium.usecases.see_ladder import Rung, see_ladder
from podium.usecases.see_queues import QueueSeen, QueuesSeen, see_queues
from podium.usecases.see_workers import Held, WorkerSeen, WorkersSeen, see_workers
from podium.usecases.show_run import RunReport, show_run
from podium.usecases.take_keyboard import keyboard_came_back, return_keyboard, take_keyboard
from podium.usecases.try_policy import PolicyCase, Tried, policy_cases, try_policy
from podium.usecases.verify_receipts import Verdict, Verifier, verify_receipts
from podium.usecases.watch_work import RunSeen, WorkSeen, WorkWatch
from podium.usecases.workspaces import (
    Collected,
    Needed,
    Overview,
    collect_workspaces,
    find_removed,
    find_workspace,
    needed_by_runs,
    recover_workspace,
    snapshot_workspace,
    survey_workspaces,
)

__all__ = [
    "CANDIDATE",
    "INTERRUPTED",
    "Answer",
    "Blocked",
    "CandidateSeen",
    "Card",
    "CardKind",
    "Collected",
    "Continuation",
    "DuetTask",
    "Held",
    "Inbox",
    "Needed",
    "NewestApprovals",
    "Overview",
    "PolicyCase",
    "Promotion",
    "Pruned",
    "QueueSeen",
    "QueuesSeen",
    "Resubmitted",
    "RunReport",
    "RunSeen",
    "Rung",
    "RunsCollide",
    "ShownStatus",
    "Standing",
    "Tried",
    "Verdict",
    "Verifier",
    "WorkSeen",
    "WorkWatch",
    "WorkerSeen",
    "WorkersSeen",
    "answer_to",
    "approval_meant",
    "approve",
    "cancel",
    "candidate_runs",
    "check_policy",
    "collect_workspaces",
    "deliver",
    "demote",
    "find_call_key",
    "find_candidate",
    "find_duet",
    "find_id",
    "find_removed",
    "find_undoable",
    "find_workspace",
    "follow_logs",
    "follow_receipts",
    "how_it_continues",
    "how_they_stand",
    "keyboard_came_back",
    "left_alone",
    "list_approvals",
    "list_candidates",
    "list_receipts",
    "list_runs",
    "list_standings",
    "needed_by_runs",
    "newest_approvals",
    "plan_promotion",
    "policy_cases",
    "promote",
    "prune",
    "recover_workspace",
    "reject",
    "resolve_call",
    "resubmit",
    "resume",
    "retry",
    "return_keyboard",
    "say_yes_to_candidate",
    "see_card",
    "see_collisions",
    "see_duets",
    "see_inbox",
    "see_ladder",
    "see_queues",
    "see_through",
    "see_workers",
    "show_approval",
    "show_candidate",
    "show_run",
    "snapshot_workspace",
    "survey_workspaces",
    "take_keyboard",
    "try_policy",
    "verify_receipts",
    "with_hosts",
    "wo_id_of",
]
