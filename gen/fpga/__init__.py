"""Resources and clock of a design in an FPGA."""
