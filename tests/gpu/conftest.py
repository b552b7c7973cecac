"""What the tests on a GPU share with those under Triton's interpreter."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "engines" / "model"))  # kernel_oracles.py
