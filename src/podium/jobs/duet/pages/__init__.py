"""Panes of duets in a browser: painted as they change, typed into by whoever has the keyboard."""
