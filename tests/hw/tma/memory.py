"""An AXI4 memory for Amaranth's simulator that breaks a test at an access outside its regions.

The rules of AXI4 itself are checked beside it (`tests.hw.lib.checked_port`).
"""

from collections import Counter, defaultdict, deque

import numpy as np

__all__ = ["AxiMemory", "Violation"]


class Violation(AssertionError):
    """A burst outside the declared regions, or one that this memory does not serve."""


class AxiMemory:
    """Memory behind one AXI4 port, from address 0.

    ``latency`` cycles pass from an address to its first data, ``jitter`` more at random; each
    channel's ready, and each R beat, waits with probability ``stall``. ``readable`` and
    ``writable`` are lists of (start, end); an access outside is a violation. ``errors`` maps
    ("read" or "write", number of the beat or burst) to a response code; ``failing`` holds the
    (start, end, code) of addresses that answer with it. With ``interleaves``, read data of bursts
    of different IDs come interleaved, in any order.
    """

    def __init__(
        self,
        axi,
        data,
        rng,
        *,
        latency=4,
        jitter=0,
        stall=0.0,
        readable=(),
        writable=(),
        errors=(),
        failing=(),
        interleaves=False,
    ):
        self.axi = axi
        self.data = data
        self.rng = rng
        self.latency = latency
        self.jitter = jitter
        self.stall = stall
        self.readable = list(readable)
        self.writable = list(writable)
        self.errors = dict(errors)
        self.failing = list(failing)
        self.interleaves = interleaves
        self.cycle = 0
        self.read_beats = []  # cycle of each R transfer
        self.write_beats = []  # cycle of each W transfer
        self.read_bursts = []
        self.write_bursts = []
        self.outstanding = 0
        self.most_outstanding = 0
        self.most_unanswered = 0
        self.refused_read_data = 0
        self.reads = hasattr(axi, "arvalid")
        self.writes = hasattr(axi, "awvalid")
        self._reading = defaultdict(deque)  # (cycle due, address, last, ID) of each order
        self._order = 0  # that of the beat on R
        self._write_bursts = deque()
        self._write_data = deque()
        self._responses = deque()
        self._answered = 0
        self._last_due = Counter()

    @property
    def quiet(self):
        """Nothing is owed by either side."""
        reading = any(self._reading.values())
        return not (reading or self._write_bursts or self._write_data or self._responses)

    def _response(self, kind, number, start, end):
        """Response to a beat or a burst of this number and these addresses."""
        for low, high, code in self.failing:
            if start < high and low < end:
                return code
        return self.errors.get((kind, number), 0)

    def _shown(self, ctx, channel, *names):
        return [ctx.get(getattr(self.axi, channel + name)) for name in names]

    def _check_burst(self, address, length, size, burst, regions):
        beat = len(self.axi.rdata if self.reads else self.axi.wdata) // 8
        if burst != 1 or 1 << size != beat:
            raise Violation(f"burst type {burst} size {size} is not full-width INCR")
        if address % beat:
            raise Violation(f"burst address {address:#x} is not aligned")
        end = address + length * beat
        if not any(low <= address and end <= high for low, high in regions):
            raise Violation(f"access {address:#x} to {end:#x} is outside the declared regions")

    def _wait(self):
        return self.latency + (self.rng.randint(0, self.jitter) if self.jitter else 0)

    def _ready(self):
        return self.stall == 0.0 or self.rng.random() >= self.stall

    async def run(self, ctx):
        """Serve the port, a cycle a turn, for ever."""
        axi = self.axi
        reading_valid = responding = False
        while True:
            # All a manager's outputs are registers, so they stand from the start of the cycle.
            if self.reads:
                self._address_read(ctx, axi)
                reading_valid = self._read(ctx, axi, reading_valid)
            if self.writes:
                self._address_write(ctx, axi)
                self._write(ctx, axi)
                responding = self._respond(ctx, axi, responding)
            await ctx.tick()
            self.cycle += 1

    def _address_read(self, ctx, axi):
        ready = self._ready()
        ctx.set(axi.arready, ready)
        if ready and ctx.get(axi.arvalid):
            address, length, size, burst = self._shown(ctx, "ar", "addr", "len", "size", "burst")
            beat = len(axi.rdata) // 8
            self._check_burst(address, length + 1, size, burst, self.readable)
            self.read_bursts.append((address, length + 1))
            id = ctx.get(axi.arid)
            order = id if self.interleaves else 0
            due = max(self.cycle + self._wait(), self._last_due[order])
            self._last_due[order] = due
            for number in range(length + 1):
                place = address + number * beat
                self._reading[order].append((due, place, number == length, id))
            self.outstanding += 1
            self.most_outstanding = max(self.most_outstanding, self.outstanding)

    def _read(self, ctx, axi, showing):
        beat = len(axi.rdata) // 8
        due = [
            order for order, beats in self._reading.items() if beats and beats[0][0] <= self.cycle
        ]
        if not showing and due and self._ready():
            self._order = due[0] if len(due) == 1 else self.rng.choice(due)
            _, address, last, id = self._reading[self._order][0]
            word = int.from_bytes(self.data[address : address + beat].tobytes(), "little")
            ctx.set(axi.rdata, word)
            response = self._response("read", len(self.read_beats), address, address + beat)
            ctx.set(axi.rresp, response)
            ctx.set(axi.rid, id)
            ctx.set(axi.rlast, last)
            showing = True
        ctx.set(axi.rvalid, showing)
        if showing and ctx.get(axi.rready):
            self.read_beats.append(self.cycle)
            self.outstanding -= self._reading[self._order].popleft()[2]
            return False
        self.refused_read_data += showing
        return showing

    def _address_write(self, ctx, axi):
        ready = self._ready()
        ctx.set(axi.awready, ready)
        if ready and ctx.get(axi.awvalid):
            address, length, size, burst = self._shown(ctx, "aw", "addr", "len", "size", "burst")
            self._check_burst(address, length + 1, size, burst, self.writable)
            self.write_bursts.append((address, length + 1))
            self._write_bursts.append((address, length + 1, ctx.get(axi.awid)))
            unanswered = len(self.write_bursts) - self._answered
            self.most_unanswered = max(self.most_unanswered, unanswered)

    def _write(self, ctx, axi):
        ready = self._ready()
        ctx.set(axi.wready, ready)
        if ready and ctx.get(axi.wvalid):
            self.write_beats.append(self.cycle)
            self._write_data.append(self._shown(ctx, "w", "data", "strb"))
        # Data may come before their address.
        while self._write_bursts and len(self._write_data) >= self._write_bursts[0][1]:
            self._commit(axi, *self._write_bursts.popleft())

    def _commit(self, axi, address, length, id):
        beat = len(axi.wdata) // 8
        start = address
        for _ in range(length):
            word, strobe = self._write_data.popleft()
            enabled = [i for i in range(beat) if strobe >> i & 1]
            new = np.frombuffer(word.to_bytes(beat, "little"), np.uint8)
            self.data[[address + i for i in enabled]] = new[enabled]
            address += beat
        due = self.cycle + self._wait()
        if self._responses:
            due = max(due, self._responses[-1][0])
        self._responses.append((due, start, address, id))

    def _respond(self, ctx, axi, showing):
        if not showing and self._responses and self._responses[0][0] < self.cycle and self._ready():
            _, start, end, id = self._responses[0]
            ctx.set(axi.bid, id)
            ctx.set(axi.bresp, self._response("write", self._answered, start, end))
            showing = True
        ctx.set(axi.bvalid, showing)
        if showing and ctx.get(axi.bready):
            self._answered += 1
            self._responses.popleft()
            return False
        return showing
