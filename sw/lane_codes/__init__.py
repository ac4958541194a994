"""Lane programs of element math: from tile IR to the programs of the lanes of PCUs."""
