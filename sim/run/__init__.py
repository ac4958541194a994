"""Runs of kernels: compile, execute on a back end, compare the results with golden and float64."""
