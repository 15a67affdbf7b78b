"""Headless CLIs: one small file each, and what they share."""
