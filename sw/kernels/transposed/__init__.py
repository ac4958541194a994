"""Products of transposed matrices."""
