"""Contract of hardware, compiler, simulation and docs: parameters, encodings, limits."""
