"""How engines are started: typed settings, known flags, and the command lines and containers made of them. No I/O."""
