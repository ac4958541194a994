"""Pipelines of element math without reductions, and the blocks that pass through them."""
