"""Im2col boxes of the TMA engine: rules of their descriptors, and the walk over their pixels."""
