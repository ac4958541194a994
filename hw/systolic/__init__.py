"""The grid of multiply-accumulate cells, its skew and its accumulators."""
