"""What compiled code and the runtime agree on: frames, signatures, symbols, values, failures."""
