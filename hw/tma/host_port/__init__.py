"""The TMA unit behind AXI4-Lite registers."""
