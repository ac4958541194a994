"""Element math on the sums of a matrix product, before they are stored: in the same image."""
