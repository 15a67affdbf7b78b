"""Benchmark of messages: how many are understood."""
