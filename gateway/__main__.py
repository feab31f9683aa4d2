"""`python -m gateway` is the `turnout` command."""

import signal
import sys

_HEEDED = signal.getsignal(signal.SIGINT) is signal.default_int_handler
if _HEEDED:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a Ctrl-C while the rest is loaded ends it without a traceback

from gateway.cli import main  # noqa: E402 - see above

if _HEEDED:
    signal.signal(signal.SIGINT, signal.default_int_handler)

if __name__ == "__main__":
    sys.exit(main())
