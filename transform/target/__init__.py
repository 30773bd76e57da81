"""Parts of targets: which part runs what, copies between memories, hooks of kinds."""
