"""Reading tensor-level functions."""
