"""From what was said to the few facts worth keeping: ask a model, prove, write."""
