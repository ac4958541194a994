"""The address generation and coalescing unit: counter chains and credits round a TMA engine."""
