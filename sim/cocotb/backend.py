# amaranth: UnusedElaboratable=no
# The chip is built only for its ports, and never elaborated.
"""Back end ``cocotb``: the RTL with cocotbext-axi as an independent host and memory."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path

from hw.arch.errors import WrongResultError
from hw.chip import Chip
from sim.backends.emitted import design_of
from sim.backends.interface import Answer, Backend, BuildFigures, LaunchOrder, Setup
from sim.cocotb import chip_launch
from sim.cocotb.bench_runner import port_names, run_program
from sim.cocotb.executable import build_model

__all__ = ["CocotbRtl"]


class CocotbRtl(Backend):
    """The chip in cocotb, linked from the Verilator models that the back end `rtl` uses.

    Of the memory conditions it applies only stalls: cocotbext-axi has no latency.
    """

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._design, emit_seconds = design_of(setup)
        started = time.monotonic()
        self._program, hit = build_model(
            self._design,
            port_names(Chip(setup.config)),
            waves=setup.waves is not None,
            use_cache=setup.use_cache,
            progress=setup.progress,
        )
        self.figures = BuildFigures(
            verilog_sha256=self._design.sha256,
            emit_seconds=emit_seconds,
            build_seconds=time.monotonic() - started,
            cache_hit=hit,
        )

    def launch(self, memory: bytearray, order: LaunchOrder) -> Answer:
        """Run a launch list.

        Raises
        ------
        WrongResultError
            If the simulation ends early, for example at a failed assertion or at an access to
            memory outside the order's regions.
        """
        setup = self._setup
        orders = {
            "ports": setup.config.agcu.count,
            "list_address": order.list_address,
            "entries": order.entries,
            "max_cycles": order.max_cycles,
            "regions": order.regions,
            "seed": setup.conditions.seed,
            "stall": setup.conditions.stall,
        }
        with tempfile.TemporaryDirectory(prefix="tilewright.") as name:
            folder = Path(name)
            (folder / "orders.json").write_text(json.dumps(orders))
            (folder / "memory").write_bytes(memory)
            with setup.progress.step("simulating with cocotb"):
                result = run_program(
                    chip_launch.__name__,
                    self._design.top,
                    self._program,
                    seed=setup.conditions.seed,
                    waves=setup.waves,
                    environment={chip_launch.FOLDER_VARIABLE: name},
                )
            if result.failed:
                raise WrongResultError(
                    f"cocotb stopped: {result.failures[0]}; log in {result.log}",
                    kind="rtl-fault",
                    where=str(result.log),
                )
            answer = json.loads((folder / "answer.json").read_text())
            memory[:] = (folder / "memory").read_bytes()
        return Answer(seconds=result.seconds, **answer)
