"""Lane codes on the golden model of the lanes: a block of positions and a phase at a time."""

import numpy as np

from hw.arch.lanes.phase_word import AuxiliaryUse, PhaseSource
from hw.numeric.lane_model import LaneModel, VectorStream
from sim.golden import Interpreter
from sw.ir import nodes as ir
from sw.lane_codes.lane_codes import lane_codes

__all__ = ["interpreted", "machine", "parts_of", "region_results"]


def _vectors(elements, format_, words):
    """Vectors that hold elements one after another; bytes of ones fill the last."""
    flat = np.ascontiguousarray(elements).reshape(-1)
    data = np.full(-(-flat.size * format_.bits // (32 * words)) * words * 4, 0xFF, np.uint8)
    raw = format_.packed(flat)
    data[: raw.size] = raw
    return data.view(np.uint32).reshape(-1, words)


def _stream(words, last):
    ends = np.zeros(len(words), bool)
    ends[-1:] = last
    return VectorStream(words, ends, ends)


class _Unit:
    """A PCU's lanes that run a code."""

    def __init__(self, code, width_bits, function_bits):
        self.code, self.words = code, width_bits // 32
        self.model = LaneModel(code.program, width_bits=width_bits, function_bits=function_bits)
        self.lanes = width_bits // code.formats[code.source].bits

    def auxiliary(self, coded, values):
        """Vectors that a phase takes beside its source."""
        if coded.auxiliary is None:
            return np.zeros((0, self.words), np.uint32)
        value = np.concatenate([values[each] for each in coded.beside])
        shapes = {
            AuxiliaryUse.VECTOR: (self.lanes, value.shape[1]),
            AuxiliaryUse.HELD: (self.lanes, 1),
            AuxiliaryUse.SPREAD: (1, value.shape[1]),
            AuxiliaryUse.SPREAD_PAIR: (2, value.shape[1]),
        }
        assert value.shape == shapes[coded.phase.auxiliary]
        return _vectors(value.T, self.code.formats[coded.auxiliary], self.words)

    def block(self, values):
        """Results of all phases for the values of so many positions as a vector has."""
        made = {}
        phases = list(self.code.phases)
        while phases:
            # A phase over a packet, those joined to it, and those over statistics that follow it.
            run = [phases.pop(0)]
            while phases and (
                phases[0].phase.kept_words
                or (phases[0].source is None and phases[0].auxiliary is None)
            ):
                run.append(phases.pop(0))
            known = values | made
            beside = np.concatenate([self.auxiliary(each, known) for each in run])
            streams = {PhaseSource.AUXILIARY: _stream(beside, last=False)}
            steps = 1
            if run[0].source is not None:
                packet = known[run[0].source]
                assert packet.shape[0] == self.lanes
                steps = packet.shape[1]
                words = _vectors(packet.T, self.code.formats[run[0].source], self.words)
                streams[PhaseSource.ACTIVATION] = _stream(words, last=True)
            results = self.model.run(streams)
            packets = np.split(results.words, np.flatnonzero(results.last) + 1)[:-1]
            sending = [each for each in run if each.result is not None]
            assert len(packets) == len(sending)
            for each, packet in zip(sending, packets, strict=True):
                format_ = self.code.formats[each.result]
                elements = packet.reshape(-1).view(format_.dtype)
                count = self.lanes * (steps if each.source else 1)
                made[each.result] = elements[:count].reshape(-1, self.lanes).T
        return made

    def run(self, values):
        """Values of all positions, and those that the code sends."""
        rows = values[self.code.source].shape[0]
        parts = []
        for first in range(0, rows, self.lanes):
            own = {}
            for name, value in values.items():
                part = value[first : first + self.lanes] if len(value) == rows else value
                if len(value) == rows and len(part) < self.lanes:
                    rest = np.full((self.lanes - len(part), value.shape[1]), 77)
                    part = np.concatenate([part, rest.astype(value.dtype)])
                own[name] = part
            parts.append(self.block(own))
        names = parts[0] if parts else ()
        return {name: np.concatenate([part[name] for part in parts])[:rows] for name in names}


def machine(codes, values, *, lane_axis, width_bits, function_bits):
    """Values that codes send, from those of the inputs; arrays are tiles."""
    turned = {name: value.T if lane_axis else value for name, value in values.items()}
    for code in codes:
        turned |= _Unit(code, width_bits, function_bits).run(turned)
    return {name: value.T if lane_axis else value for name, value in turned.items()}


def interpreted(nodes, values, function_bits):
    """Values of a region by the golden interpreter."""
    interpreter = Interpreter({}, function_bits)
    interpreter.values.update(values)
    with np.errstate(all="ignore"):
        interpreter.run(tuple(nodes))
    return interpreter.values


def parts_of(program):
    """Loads, nodes between them and the stores, and stored values by tensor."""
    loads = {node.result.name: node for node in program.nodes if isinstance(node, ir.Load)}
    stores = [node for node in program.nodes if isinstance(node, ir.Store)]
    rest = [node for node in program.nodes if not isinstance(node, ir.Load | ir.Store)]
    inputs = {name: node.result.type for name, node in loads.items()}
    outputs = {node.values[0].name: program.tensor(node.view.tensor).type.format for node in stores}
    tensors = {node.view.tensor: node.values[0].name for node in stores}
    return loads, rest, inputs, outputs, tensors


def region_results(program, arrays, *, lane_axis, width_bits=256, function_bits=16, **options):
    """Codes of a program without loops, and its outputs by tensor from them."""
    loads, nodes, inputs, outputs, tensors = parts_of(program)
    codes = lane_codes(
        nodes, inputs, outputs, lane_axis=lane_axis, function_bits=function_bits, **options
    )
    values = {name: np.atleast_2d(arrays[load.view.tensor]) for name, load in loads.items()}
    sent = machine(
        codes, values, lane_axis=lane_axis, width_bits=width_bits, function_bits=function_bits
    )
    return codes, {tensor: sent[name] for tensor, name in tensors.items()}
