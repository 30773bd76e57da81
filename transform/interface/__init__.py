"""Passes that change what functions take and give: parameters and results."""
