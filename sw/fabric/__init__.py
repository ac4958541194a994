"""The fabric as the compiler sees it: ends, routing graph, the rule of merging, a net's tree."""
