"""Texts: where they are found, places in them, findings about them."""
