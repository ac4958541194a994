"""Back end ``rtl``: native model of the chip's Verilog, with a model of host and memory."""

from __future__ import annotations

from sim.backends.emitted import design_of
from sim.backends.interface import Answer, Backend, BuildFigures, LaunchOrder, Setup
from sim.native.chip_model import ChipModel

__all__ = ["NativeRtl"]


class NativeRtl(Backend):
    """The native model of a chip."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        design, emit_seconds = design_of(setup)
        self._model = ChipModel(
            design,
            setup.config,
            seed=setup.conditions.seed,
            use_cache=setup.use_cache,
            waves=setup.waves,
            progress=setup.progress,
        )
        self.figures = BuildFigures(
            verilog_sha256=design.sha256,
            emit_seconds=emit_seconds,
            build_seconds=self._model.build_seconds,
            cache_hit=self._model.cache_hit,
        )

    def close(self) -> None:
        """Free the model."""
        self._model.close()

    def launch(self, memory: bytearray, order: LaunchOrder) -> Answer:
        """Run a launch list."""
        with self._setup.progress.step("simulating", total=order.expected_cycles) as show:
            run = self._model.run(
                memory,
                list_address=order.list_address,
                entries=order.entries,
                conditions=self._setup.conditions,
                max_cycles=order.max_cycles,
                regions=order.regions,
                sample_every=self._setup.sample_every,
                progress=show,
            )
        return Answer(
            status=run.status,
            seconds=run.seconds,
            cycles=run.cycles,
            error_code=run.error_code,
            error_detail=run.error_detail,
            error_unit=run.error_unit,
            error_entry=run.error_entry,
            bytes_read=run.bytes_read,
            bytes_written=run.bytes_written,
            counters=run.counters,
            first_mac=run.first_mac,
            launch_cycles=run.launch_cycles,
            entry_begin=run.entry_begin,
            simulated_cycles=run.simulated_cycles,
            error_met=run.errors_met > 0,
            reason=run.hang_reason,
            counter_steps=run.counter_steps,
            samples=run.samples,
            launched=run.launched,
            owed={
                port.name: f"{port.reads_owed} reads, {port.writes_owed} writes"
                for port in run.ports
                if port.reads_owed or port.writes_owed
            },
        )
