"""Pattern memory unit (PMU): scratchpad banks, stream engines, slots with barriers."""
