"""Tensor unit (TPU): a matrix unit with a unified buffer and an instruction stream."""
