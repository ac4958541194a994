"""Common building blocks: streams, FIFOs, loop nests, counters, barriers, AXI."""
