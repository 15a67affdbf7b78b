"""Confinement by the kernel: what a process tree may reach, held by mechanisms that were tried first.

    Podium ──order──► guard ──fork──► (scope, filter) ──exec──► bwrap ──exec──► the program
                        ▲                                                          │
                        └────── every exec waits here for an answer ◄──────────────┘

`canary` finds out which mechanism this machine gives. `bubblewrap`, `landlock` and `seatbelt` turn a
`Confinement` into options and rules; `tree_confinement` applies them in the guard's fork; `supervisor` answers the
guarded system calls in the guard itself. What runs in the guard imports only what loads quickly.
"""
