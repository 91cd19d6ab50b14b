"""`python -m panto` is the program `panto`."""

import sys

from panto.app.main import main

if __name__ == "__main__":
    sys.exit(main())
