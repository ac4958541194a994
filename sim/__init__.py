"""Simulation of one program by golden interpreter, emulator and RTL, and comparison of results."""
