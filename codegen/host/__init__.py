"""The program around the kernels: what every executor and back end reads of a graph function."""
