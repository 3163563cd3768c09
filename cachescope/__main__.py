"""``python -m cachescope``."""

import sys

from cachescope.cli import main

sys.exit(main())
