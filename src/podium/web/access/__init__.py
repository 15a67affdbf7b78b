"""Who may do what: tokens, sessions, roles, and the guards before every handler."""
