"""Layer 1: what a message means, held against the registry and the directives."""
