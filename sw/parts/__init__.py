"""Parts of a kernel, one image each, and the launch list that runs them in order."""
