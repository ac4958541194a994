"""Generators of random chips, programs, images, memories and operands."""
