"""Liveness of a decoded image: its token-level run."""
