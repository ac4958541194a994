"""Generation: a configuration becomes Verilog, an area table, a picture."""
