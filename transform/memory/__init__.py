"""From values to explicit memory: lowering, sharing and planning of storage."""
