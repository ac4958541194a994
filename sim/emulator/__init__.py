"""Functional emulator: executes an image without RTL and thereby defines the image format."""

from sim.emulator.emulated_launch import EmulatorRun, emulate
from sim.emulator.emulator_error import EmulatorError

__all__ = ["EmulatorError", "EmulatorRun", "emulate"]
