"""Registers that a host reads and writes."""
