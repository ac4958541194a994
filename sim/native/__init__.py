"""Native simulation: emitted Verilog as a shared library, called from Python."""
