"""Rows of tensors in memory by number."""
