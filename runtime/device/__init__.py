"""The machine that programs run on: its threads, and object code loaded into the process."""
