"""Where agents work: git isolation and import, and what a project keeps for them."""
