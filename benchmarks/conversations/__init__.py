"""Benchmark of the operator on the messages and sessions of an office, each with what a colleague would do."""
