"""Stimulus drivers of blocks: streams and images from numpy arrays, results back to arrays."""
