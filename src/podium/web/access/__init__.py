"""Access control: tokens, sessions, roles, and the guards before every handler."""
