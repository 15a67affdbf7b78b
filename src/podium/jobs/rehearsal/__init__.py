"""Rehearsal of a policy: scenes of podium.yaml played against the gate."""
