"""A roofing business's tools. `tools.registry.json` is law; `handlers/` performs what it names."""
