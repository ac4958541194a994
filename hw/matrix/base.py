"""Base class of matrix units: streams, result FIFO, output stage and utilization counters."""

from __future__ import annotations

import abc
from typing import NamedTuple

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from hw.emit.shared import shared
from hw.lib.component import Component
from hw.matrix.output_stage import Activation
from hw.matrix.partial_sums import ResultQueue
from hw.matrix.unit_config import COUNTERS, UnitConfig

__all__ = ["Doing", "UnitBase"]


class Doing(NamedTuple):
    """Activity of a matrix unit in a cycle, for its counters; the first that is true counts.

    Members
    -------
    active : Value
        A vector enters the array.
    weight_stall, weight_shift : Value
        A vector waits for a stationary tile that has not arrived, or is being shifted in.
    """

    active: Value
    weight_stall: Value
    weight_shift: Value


class UnitBase(Component):
    """Base class of matrix units: operand streams, result FIFO, output stage and counters.

    Parameters
    ----------
    config : UnitConfig
    activations, weights : data.Layout or int
        Shapes of the streams of operands.

    Members
    -------
    i_activation, i_weight : streams
    o_result : stream of rows
        Rows of results, as :class:`hw.matrix.output_stage.Activation` sends them.
    activation_mode, weight_mode
        Static: format of each operand, as :class:`hw.array.operand.OperandRecoder` says.
    counters
        Cycles since reset by activity; exactly one counter advances per cycle.
    Others are those of :class:`hw.matrix.output_stage.Activation`.
    """

    i_activation: stream.Interface
    i_weight: stream.Interface
    o_result: stream.Interface
    activation_mode: Signal
    weight_mode: Signal
    counters: data.View[data.StructLayout]

    def __init__(
        self,
        config: UnitConfig,
        *,
        activations: data.StructLayout | int,
        weights: data.StructLayout | int,
    ) -> None:
        self._config = config
        self._activation = Activation(config)
        super().__init__(
            {
                "i_activation": In(stream.Signature(activations)),
                "i_weight": In(stream.Signature(weights)),
                "weight_mode": In(1),
                "counters": Out(COUNTERS),
            }
            | self._activation.outer_members
        )

    @abc.abstractmethod
    def _add_array(self, m: Module, queue: ResultQueue) -> Doing:
        """Add the array and its operand side, which write rows of sums into the result FIFO."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        queue = ResultQueue(
            columns=config.array.columns, rows=config.queue_rows, together=config.together
        )
        m.submodules.queue = shared(queue)
        m.submodules.activation = shared(self._activation)
        self._activation.connect_outside(m, self, queue.o_rows)
        doing = self._add_array(m, queue)
        counters = self.counters
        with m.If(doing.active):
            m.d.sync += counters.active.eq(counters.active + 1)
        with m.Elif(doing.weight_stall):
            m.d.sync += counters.weight_stall.eq(counters.weight_stall + 1)
        with m.Elif(doing.weight_shift):
            m.d.sync += counters.weight_shift.eq(counters.weight_shift + 1)
        with m.Else():
            m.d.sync += counters.non_matrix.eq(counters.non_matrix + 1)
        return m
