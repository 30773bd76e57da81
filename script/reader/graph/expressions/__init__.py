"""Reading the expressions of graph functions: calls, operators, elements, leaves."""
