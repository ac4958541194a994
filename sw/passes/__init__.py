"""Compiler passes, one a file, each a function from IR to IR."""
