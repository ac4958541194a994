"""cocotb testbenches, one module a block."""
