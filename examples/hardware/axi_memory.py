"""Memory behind an AXI4 port, for Amaranth's simulator: bursts in order, data after a latency."""

from collections import deque
from typing import Any

import numpy as np


class AxiMemory:
    """Memory from address 0 on; ``data`` are its bytes, which reads see and writes change."""

    def __init__(self, axi: Any, data: np.ndarray, latency: int = 20) -> None:
        self.axi, self.data, self.latency = axi, data, latency

    async def run(self, ctx: Any) -> None:
        """Serve the port for ever; a background testbench."""
        axi, beat = self.axi, len(self.axi.rdata) // 8
        reads: deque[tuple[int, int, bool, int]] = deque()  # cycle, address, last, ID
        bursts: deque[int] = deque()
        answers: deque[int] = deque()
        cycle = place = 0
        for ready in (axi.arready, axi.awready, axi.wready):
            ctx.set(ready, 1)
        while True:
            due = bool(reads) and reads[0][0] <= cycle
            ctx.set(axi.rvalid, due)
            if due:
                _, address, last, id = reads[0]
                ctx.set(axi.rdata, int.from_bytes(self.data[address : address + beat], "little"))
                ctx.set(axi.rlast, last)
                ctx.set(axi.rid, id)
            ctx.set(axi.bvalid, bool(answers) and answers[0] <= cycle)
            moves = [
                ctx.get(getattr(axi, f"{name}valid")) and ctx.get(getattr(axi, f"{name}ready"))
                for name in ("ar", "r", "aw", "w", "b")
            ]
            if moves[1]:
                reads.popleft()
            if moves[4]:
                answers.popleft()
            if moves[0]:
                length = ctx.get(axi.arlen)
                for number in range(length + 1):
                    address = ctx.get(axi.araddr) + number * beat
                    beats = (cycle + self.latency, address, number == length, ctx.get(axi.arid))
                    reads.append(beats)
            if moves[2]:
                bursts.append(ctx.get(axi.awaddr))
            if moves[3]:
                # This manager gives an address no later than its data.
                word = ctx.get(axi.wdata).to_bytes(beat, "little")
                for number in range(beat):
                    if ctx.get(axi.wstrb) >> number & 1:
                        self.data[bursts[0] + place + number] = word[number]
                place += beat
                if ctx.get(axi.wlast):
                    bursts.popleft()
                    place = 0
                    answers.append(cycle + self.latency)
            await ctx.tick()
            cycle += 1
