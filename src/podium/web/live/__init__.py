"""Live events for many viewers."""
