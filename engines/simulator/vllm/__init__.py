"""vLLM 0.32 with its Python frontend. Source of every habit: recordings of a real server, named where they matter."""
