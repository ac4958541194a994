"""Systolic arrays: MAC cells, operand recoding, skew, and arrays of three dataflows."""
