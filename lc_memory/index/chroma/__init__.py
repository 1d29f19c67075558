"""Chroma: in a folder, on a server, in its cloud, in this process's memory."""
