"""What was compiled once is kept on disk, by content: code, and whole programs."""
