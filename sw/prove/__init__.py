"""Liveness proof of a decoded image by a token-level run."""

from sw.prove.liveness import Liveness, LivenessError, prove, require_live

__all__ = ["Liveness", "LivenessError", "prove", "require_live"]
