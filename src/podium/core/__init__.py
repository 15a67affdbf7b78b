"""The nouns of Podium, its events and its errors. No I/O."""
