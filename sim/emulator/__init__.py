"""The emulator: executes an assembled image without RTL, the living definition of the format."""

from sim.emulator.errors import EmulatorError
from sim.emulator.run import EmulatorRun, emulate

__all__ = ["EmulatorError", "EmulatorRun", "emulate"]
