"""Programs on a terminal that somebody else made: they outlive Podium, and are confined all the same.

    tmux ──► attendant ──control socket──► guard ──fork──► the program, in front on the terminal
             (first of the terminal;       (as beside      and around it bubblewrap, apart
              serves the network)           Podium)        from the terminal

Podium writes what is to be started into a private file (`launch_spec`) and gives away a command that names it. The attendant
is to its guard what Podium is to others: it sends the order, serves the tree's connections, and when it goes the guard
kills the tree. It runs without any package, so the files here import what needs none.
"""
