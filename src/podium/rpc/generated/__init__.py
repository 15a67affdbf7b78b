"""Written by `scripts/protos` from `podium.proto`. Not to be changed by hand."""
