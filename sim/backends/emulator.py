"""Back end ``emulator``: functional execution of an image, without RTL and without timing."""

from __future__ import annotations

import time

from sim.backends.interface import Answer, Backend, BuildFigures, LaunchOrder, Setup
from sim.emulator import emulate

__all__ = ["Emulator"]


class Emulator(Backend):
    """The emulator of a chip; of the setup it uses only configuration and progress."""

    figures = BuildFigures()

    def __init__(self, setup: Setup) -> None:
        self._setup = setup

    def launch(self, memory: bytearray, order: LaunchOrder) -> Answer:
        """Run a launch list; the limit of cycles does not apply."""
        started = time.monotonic()
        with self._setup.progress.step("emulating"):
            run = emulate(
                self._setup.config,
                memory,
                list_address=order.list_address,
                entries=order.entries,
            )
        return Answer(
            status=run.status,
            seconds=time.monotonic() - started,
            error_code=run.error_code.value,
            error_detail=run.error_detail,
            error_unit=run.error_unit,
            error_entry=run.error_entry,
            bytes_read=run.bytes_read + run.launch_bytes_read,
            bytes_written=run.bytes_written,
        )
