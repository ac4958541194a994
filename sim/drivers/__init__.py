"""Drivers: what a host or a neighbouring unit would send to a block, from numpy arrays."""
