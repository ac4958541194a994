"""Generation from a configuration: Verilog, area tables, proofs and floorplans."""
