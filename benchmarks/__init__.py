"""Costs of Podium, as ratios against the floor or a peer measured in the same run."""
