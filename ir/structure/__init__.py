"""What is read off the field roles of nodes: walking, equality, hashes, copies, and the merging of modules."""
