"""Circuits of floating-point arithmetic: products, sums, conversions, special functions."""
