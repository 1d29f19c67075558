"""What every implementation of a contract must do, run over all of them."""
