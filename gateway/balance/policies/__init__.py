"""Which of the ready endpoints takes the next request: one file per policy."""
