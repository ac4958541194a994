"""Sweeps: many points run on processes or a cluster, kept as they end, and compared."""
