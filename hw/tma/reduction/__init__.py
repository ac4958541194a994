"""Reducing stores of a TMA unit: interlock, combiner, and read-combine-write of bursts."""
