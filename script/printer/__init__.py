"""IR to script text."""
