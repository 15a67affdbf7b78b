"""Podium puts AI agents to work under a deterministic supervisor.

Read in this order: `ports` (what the parts promise each other), one flow in `flows`, `wiring`
(how a working Podium is put together), one room such as `journal`, and that flow's test.
"""

__version__ = "0.2.0"
