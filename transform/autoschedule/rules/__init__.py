"""Rules of the default schedule, one per file: each says when it applies and what it makes of a nest of loops.

Rules go by the form of the loops, never by names; what they know of the machine and are tuned by is data
(`weft.target.machine_model`, `weft.transform.autoschedule.knobs`). `builtin` puts them in the registry.
"""
