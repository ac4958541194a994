"""Pipelines with columns on lanes."""
