"""What PrimFuncs are made of: scalar expressions, intrinsics, externs, regions, simplification, index maps."""
