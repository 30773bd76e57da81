"""Rules for graphs in QDQ form: floats between `dequantize` and `quantize` are computed as integers."""
