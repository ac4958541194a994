"""Cache of open native models: few at a time, each used for many launches."""

from __future__ import annotations

from collections.abc import Callable

from gen.design import Design
from hw.arch.config import ChipConfig
from sim.backends.emitted import emitted_chip
from sim.closing import Closing
from sim.native.chip_model import ChipModel, ChipRun
from sim.native.conditions import MemoryConditions

__all__ = ["Models"]

_MOST_MODELS = 3


class Models(Closing):
    """Native models by configuration; the least recently used is closed.

    Parameters
    ----------
    design_of : function
        Function to the Verilog of a chip; tests use it to plant faults.
    """

    def __init__(self, design_of: Callable[[ChipConfig], Design] = emitted_chip) -> None:
        self._design_of = design_of
        self._open: dict[ChipConfig, ChipModel] = {}
        self.chips: set[ChipConfig] = set()

    def close(self) -> None:
        """Free every model."""
        while self._open:
            self._open.popitem()[1].close()

    def of(self, config: ChipConfig) -> ChipModel:
        """Return the model of a chip; build it if necessary."""
        model = self._open.pop(config, None)
        if model is None:
            while len(self._open) >= _MOST_MODELS:
                self._open.pop(next(iter(self._open))).close()
            model = ChipModel(self._design_of(config), config, seed=1)
        self._open[config] = model
        self.chips.add(config)
        return model

    def run(
        self,
        config: ChipConfig,
        memory: bytearray,
        *,
        list_address: int,
        entries: int,
        conditions: MemoryConditions,
        max_cycles: int,
    ) -> ChipRun:
        """Run a launch list on the model of a chip.

        Raises
        ------
        RtlFaultError
            If the chip violates an AXI4 rule, or an assertion of the design fails.
        """
        return self.of(config).run(
            memory,
            list_address=list_address,
            entries=entries,
            conditions=conditions,
            max_cycles=max_cycles,
        )
