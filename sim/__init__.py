"""Simulation: golden, emulator and RTL answers to one program, and their comparison."""
