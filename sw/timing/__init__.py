"""Cycles of a chip program, before it runs: the network of the liveness proof with a clock."""
