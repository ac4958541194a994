"""Compiler model of the fabric: routing graph, merge orders, routing trees, netlist extraction."""
