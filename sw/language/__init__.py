"""The tile language that a kernel author writes."""
