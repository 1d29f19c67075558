"""The words beside the memories: an index in the store's own database."""
