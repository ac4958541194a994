"""Limits that several kinds of unit share."""

__all__ = ["MAX_MODULUS"]

#: Most consumers that one stream is split over.
MAX_MODULUS = 16
