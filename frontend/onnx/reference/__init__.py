"""Nodes without a native form: the call that stands for one, and bodies of operators that ONNX lacks or has wrong."""
