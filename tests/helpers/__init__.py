"""What several test files need: a scripted model, managers, ways of calling a chain."""
