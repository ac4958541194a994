"""Functional emulator: executes an image without RTL and thereby defines the image format."""

from sim.emulator.errors import EmulatorError
from sim.emulator.run import EmulatorRun, emulate

__all__ = ["EmulatorError", "EmulatorRun", "emulate"]
