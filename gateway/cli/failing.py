"""How a command says that it has failed; no more than that, so that `serve` can say it without loading typer."""


class Failure(Exception):
    """What is wrong, in one line that also says how to mend it. Exit code 1."""


class Told(Exception):
    """What is wrong has been said already, at more length than one line."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code
