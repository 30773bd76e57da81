"""The default schedule: rules that turn loop nests into vectors, tiles and parallel loops."""
