"""Reading graph functions."""
