"""cocotb: testbenches on Verilator or Icarus, and the back end that runs a chip in it."""
