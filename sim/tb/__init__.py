"""cocotb testbenches, one module per block."""
