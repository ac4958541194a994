"""Limits shared by several kinds of unit."""

__all__ = ["MAX_CREDITS", "MAX_MODULUS"]

#: Greatest token count of an AGCU: at a token port, and of stored boxes not yet reported.
MAX_CREDITS = 255

#: Greatest number of consumers that share one stream's packets.
MAX_MODULUS = 16
