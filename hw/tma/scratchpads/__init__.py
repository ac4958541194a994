"""Scratchpads of a stand-alone TMA unit, with the barriers of each."""
