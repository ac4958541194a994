"""Emission of RTLIL: shared definitions, structural modules stated in buses, memories."""
