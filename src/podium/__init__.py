"""Podium puts AI agents to work under a deterministic supervisor.

Read in this order: `ports` (protocols between packages), one job in `jobs`, `app` (how its objects are built), one package such as
`store`, and that job's tests.
"""

__version__ = "0.2.0"
