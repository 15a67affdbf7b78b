"""Settings of a project and a user: layers, trust and the origin of each value."""
