"""Numbers in fewer bits: products in half precision, weights as integers."""
