"""Tensor memory accelerator (TMA): descriptors, box addresses, load and store engines."""
