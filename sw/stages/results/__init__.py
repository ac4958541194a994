"""Results of element math on their way from lanes to memory."""
