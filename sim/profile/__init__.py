"""Profiles of runs: where the cycles of every unit went, as data and as a page."""
