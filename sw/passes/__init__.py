"""Compiler passes, one per file, each a function from one representation to the next."""
