"""What one image computes: recognition, pipelines, the stage graph, its lowering to units."""
