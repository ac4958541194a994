"""Matrix units: weight buffer, array, accumulators, drain and output stage."""
