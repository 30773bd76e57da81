"""Faults planted into weft on purpose: tests that prove a statement fail under the fault of that statement.

Whatever is installed, the faults are planted into the sources beside these tests.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))
