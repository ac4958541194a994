"""Pipelines of element math with rows on lanes."""
