"""What passes stand on: the pass, its text, contexts, pipelines, phases, checks, rewriting."""
