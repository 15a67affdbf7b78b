"""The gates of the sense loop: where its two tools and the worker's operations may act, and how often."""

from __future__ import annotations

from collections.abc import Sequence

from podium.domain.gating import Effect, Tier
from podium.flows.sense.options import SenseOptions
from podium.flows.sense.releasing import EARNED
from podium.gate import Policy, PolicyLayer

LAUNCHERS = ("g/tools/gmx_clc_orchestrator.zsh", "g/tools/gmx_clc_parse_plan.py")
HOUR, DAY = 3600.0, 86_400.0


def worker_layer(options: SenseOptions) -> PolicyLayer:
    """Orders write in safe zones and touch no forbidden one; what changes the bridge itself needs a person."""
    layout = options.layout
    zones = {
        "safe": {"paths": options.safe_zones},
        "forbidden": {"paths": options.forbidden_zones},
        # An order that writes orders, or answers in the worker's name, must not do so by itself.
        "bridge": {
            "paths": (layout.inbox, layout.claimed, layout.done, layout.parked, layout.acks),
            "write_tier": Tier.T2,
        },
        "loop-record": {
            "paths": (*own_files(options), *steering(options)),
            "write_tier": Tier.T2,
        },
        # A scheduler starts these with a person's rights, outside of every fence.
        "launchers": {"paths": LAUNCHERS, "write_tier": Tier.T2},
    }
    # Its history lies outside the safe zones, and no path of the call says so.
    no_commits = {
        "name": "orders-commit-nothing",
        "tool": "git_commit",
        "roles": ("worker",),
        "decision": Effect.DENY,
        "why": "the repository's history lies outside the safe zones",
    }
    policy = Policy.model_validate({"zones": zones, "rules": (no_commits,)})
    return PolicyLayer(origin="built-in", policy=policy)


def own_files(options: SenseOptions) -> tuple[str, ...]:
    """What the loop tells of itself, which orders may not rewrite."""
    return (options.layout.log, options.layout.parser_log, options.layout.telemetry)


def steering(options: SenseOptions) -> tuple[str, ...]:
    """What the loop goes by: its rules, and what people are shown to move into the inbox."""
    return (*((options.rules,) if options.rules else ()), options.layout.candidates)


def unconfined_layer() -> PolicyLayer:
    """Where the kernel holds nothing, no command of an order runs unasked, whatever rules for developers say."""
    rule = {
        "name": "orders-run-nothing-unconfined",
        "tool": "run_command",
        "roles": ("worker",),
        "confined": False,
        "decision": Effect.ASK,
        "tier": Tier.T2,
        "why": "nothing holds what a command of an order really does here",
    }
    return PolicyLayer(origin="user", policy=Policy.model_validate({"rules": (rule,)}))


def sense_layer(options: SenseOptions) -> PolicyLayer:
    """The loop itself writes candidates and orders, and nothing else; so many orders and no more."""
    layout = options.layout
    policy = Policy.model_validate(
        {
            "zones": {
                "safe": {"paths": (layout.candidates, layout.inbox)},
                "forbidden": {"paths": options.forbidden_zones},
            },
            "quotas": (
                _quota("orders-per-hour", options.orders_per_hour, HOUR),
                _quota("orders-per-day", options.orders_per_day, DAY),
            ),
        }
    )
    return PolicyLayer(origin="built-in", policy=policy)


def earned_layer(target: str, zones: Sequence[str], granted: Tier) -> PolicyLayer:
    """Leave to deliver orders for this target that act in these zones unasked in autonomous mode."""
    rule = {
        "name": EARNED,
        "tool": "deliver_order",
        "roles": ("sense",),
        "modes": ("autonomous",),
        "arguments": {
            "target": {"equals": target},
            "zones": {"one_of": tuple(zones)},
        },
        "decision": Effect.ALLOW,
        "up_to_tier": granted,
        "why": f"people granted autonomy for {target!r} in {', '.join(zones)} up to {granted}",
    }
    return PolicyLayer(origin="user", policy=Policy.model_validate({"rules": (rule,)}))


def _quota(name: str, limit: int, seconds: float) -> dict[str, object]:
    return {"name": name, "tool": "deliver_order", "limit": limit, "seconds": seconds}
