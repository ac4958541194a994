"""Emission: definitions shared by instances, structure stated in RTLIL, memories."""
