"""Stand-alone TMA unit: engine, descriptor cache, scratchpad and barriers behind one AXI4 port."""
