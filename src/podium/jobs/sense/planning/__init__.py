"""Part of the sense job: planning."""
