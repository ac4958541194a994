"""Two products with a softmax between them as stages: sizes, units and streams."""
