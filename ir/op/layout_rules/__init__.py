"""How operators compute on tensors whose axes lie in another order, or in blocks."""
