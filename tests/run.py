"""The whole suite in the time of its longer half:  python -m tests.run

Half of the tests mostly wait, for processes, sockets and a real vLLM; the other half mostly computes. So both halves
run at once, each in a pytest of its own. The second one's words come when it has ended, so that they do not mix.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).parent
WAITING: Final = ("e2e", "faults", "integration")
COMPUTING: Final = ("architecture", "clients", "contract", "performance", "unit")


def command(folders: tuple[str, ...]) -> list[str]:
    """What runs the tests of these folders."""
    return [sys.executable, "-m", "pytest", *(str(TESTS / folder) for folder in folders)]


def main() -> int:
    """Runs both halves. 0: both are green."""
    with tempfile.TemporaryFile() as words:
        computing = subprocess.Popen(command(COMPUTING), stdout=words, stderr=subprocess.STDOUT)
        try:
            waiting = subprocess.run(command(WAITING), check=False).returncode
            computed = computing.wait()
        finally:
            if computing.poll() is None:
                computing.terminate()
                computing.wait()
        words.seek(0)
        sys.stdout.flush()
        sys.stdout.buffer.write(words.read())
        sys.stdout.flush()
    return waiting or computed


if __name__ == "__main__":
    sys.exit(main())
