"""Where the optional measuring data lies.

The larger data sets (MADial-Bench, LoCoMo, recorded requests) are not part of this repository. Tests and
benchmarks that use them look in ``LC_MEMORY_DATA`` and then in any ``*/data`` folder next to the checkout,
and are skipped where there is none.
"""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXCERPTS = ROOT / "tests" / "excerpts"
"""The small data sets, which are part of it."""


def data_dir() -> Path | None:
    """The folder with ``messages/``, ``madial/`` and ``locomo/`` in it, or None."""
    named = os.environ.get("LC_MEMORY_DATA")
    candidates = [Path(named)] if named else sorted(ROOT.parent.glob("*/data"))
    return next((c for c in candidates if (c / "messages").is_dir()), None)
