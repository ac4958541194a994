"""Cases of the exported cores: stimuli, and the answers by numpy or by a model."""
