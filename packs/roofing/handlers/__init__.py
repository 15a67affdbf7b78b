"""One module for each domain of the registry; every public function is a tool's handler.

A handler reads, decides and gives back a `Done`: changes and the result. `records.recorded` then makes
both durable in one transaction under the call's key, so a repeated call changes nothing.
"""
