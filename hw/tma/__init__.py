"""The tensor memory accelerator: descriptors, addresses, load and store engines."""
