"""Runs, events, approvals and costs as text for the CLI, the console and chat."""
