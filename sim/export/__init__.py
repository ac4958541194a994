"""Folder of an exported core: Verilog, definitions, testbench with vectors, scripts."""
