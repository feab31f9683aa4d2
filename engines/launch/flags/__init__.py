"""The flags that engines' programs know: one table per program, and how a command line is read with it."""
