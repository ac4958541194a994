"""Gather and scatter: loops of engines whose indices come from a stream."""
