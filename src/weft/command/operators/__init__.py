"""What `weft ops` and the documentation say of operators: facts, pages of Markdown, stubs."""
