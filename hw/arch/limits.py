"""Limits that several kinds of unit share."""

__all__ = ["MAX_CREDITS", "MAX_MODULUS"]

#: Most tokens that an AGCU counts: at a token port, and of boxes stored but not reported.
MAX_CREDITS = 255

#: Most consumers that one stream is split over.
MAX_MODULUS = 16
