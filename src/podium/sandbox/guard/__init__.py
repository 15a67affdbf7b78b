"""The guard: a small process that stands between Podium and one process tree.

    Podium ──control socket──► guard ──fork──► the program ──► whatever it starts
             (order, end, EOF)        ◄── every orphan of the tree comes back here

The guard is a subreaper: a descendant that loses its parent, also by a double fork and `setsid`,
becomes the guard's child. So "I have no children" means "the tree is gone", and the guard says
`ended` only then. When the control socket closes, or Podium's process is no more, it kills the
tree at once.

It is forked from an idle `python -IS` (`fork`), which is started once and itself does nothing
but fork. So the files of this folder import only each other and what loads quickly, and the first
start of all is quick too. Podium imports them as well, for its own end.
"""
