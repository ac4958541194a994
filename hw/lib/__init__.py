"""Components that every unit is built of: streams, FIFOs, loop nests, counters, AXI."""
