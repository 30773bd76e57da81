"""Reading expressions, as far as both levels agree."""
