"""Kernels written in the tile language."""
