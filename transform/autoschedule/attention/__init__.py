"""Attention: a chain of two products with a softmax between them, over blocks of rows and of keys."""
