"""Questions about programs, answered in one place each: accesses, indices, dependence, lifetimes, purity."""
