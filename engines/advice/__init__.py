"""Which engines suit a model and a GPU, and whether it fits: facts with their sources, and arithmetic. No I/O."""
