"""Back ends: what makes code of the functions of one kind of target (`base` is the protocol, for plug-ins too)."""
