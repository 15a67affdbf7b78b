"""Part of the sense job: orders."""
