"""A run: a kernel, its operands, the answers, and what they say of each other."""
