"""The command processor: registers, launch list, images, configuration chain."""
