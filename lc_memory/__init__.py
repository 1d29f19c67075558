"""Memory at the head of LCEL chains."""
