"""What commands are given: files, arrays, the function to call, the target."""
