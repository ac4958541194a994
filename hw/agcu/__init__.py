"""Address generation and coalescing unit (AGCU): the fabric's port to memory."""
