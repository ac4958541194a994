"""Compiler model of the fabric: pins, routing graph, packet orders of merges, routing trees."""
