"""Composition root and the services that every interface calls."""
