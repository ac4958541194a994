"""Export of a component as a core for other designs: wrapper, definitions, scripts."""
