"""Back ends that execute an image: native RTL model, RTL in cocotb, emulator."""
