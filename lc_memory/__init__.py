"""Memory at the head of LCEL chains."""
from .memory import Memory
from .recorder import with_memory
