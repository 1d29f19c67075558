"""Where the original memory keeps its files: absolute paths, whatever the working directory is.

``LEGACY_MEMORY_HOME`` (read once, at import) moves them all to another folder.
"""

import os

BASE = os.path.abspath(os.environ.get("LEGACY_MEMORY_HOME") or os.path.dirname(__file__))
MEM_STORE = os.path.join(BASE, "mem_store")  # the Chroma folder of the long-term facts
PROFILE_DB = os.path.join(BASE, "memory.db")  # reserved for a user profile in SQLite
FACTS_JSON = os.path.join(BASE, "facts.json")  # reserved for facts that never leave this machine
