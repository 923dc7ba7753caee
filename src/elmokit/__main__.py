"""Run the command line: the command ``elmokit``, and ``python -m elmokit``."""

import signal
import sys


def main() -> None:
    """Run the command line. Ctrl-C counts from the first import to the last line of output."""
    try:
        from elmokit.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # nothing is left to stop


if __name__ == "__main__":
    main()
