"""What each command of the command line does; `weft.__main__` reads the arguments and calls `<name>_command` here.

Every command takes the parsed options and returns the exit status (0 or 1). A wrong input is a `WeftError`.
"""
