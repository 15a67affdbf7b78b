"""What Podium costs, as ratios against the floor or a peer measured in the same run."""
