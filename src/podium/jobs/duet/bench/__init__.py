"""Benchmark of handoffs between two terminal agents."""
