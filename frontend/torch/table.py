"""The table of ATen operators: one row for each, a function from a node and its arguments to an expression of ours.

    row("relu", lambda n, x: R.nn.relu(x))                    every overload
    row("add", add)                                           arguments as the operator's definition says

Tensors come as expressions, sizes as dimensions, everything else as it is. A row returns an expression, a tuple of them
(one for each result), or a dimension. `weft.frontend.emitter.Unsupported` says why a node has no native form.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["REASONS", "TABLE", "row"]

TABLE: dict[str, Callable[..., Any]] = {}
"""The name of an operator without its overload -> its row."""


_REASONS = {
    "the memory of a tensor is what it is about, and values have none": (
        "from_file is_contiguous is_pinned is_set_to pin_memory record_stream resize resize_ retain_grad set set_"
        " set_data storage_offset sym_is_contiguous sym_storage_offset"
    ),
    "it takes tensors of PyTorch's quantized dtypes: export with pt2e, whose integers are tensors of their own": (
        "dequantize int_repr q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point"
        " qscheme quantize_per_tensor_dynamic"
    ),
    "its numbers are those of PyTorch's own generator": (
        "binomial feature_alpha_dropout random rrelu_with_noise rrelu_with_noise_functional"
    ),
    "a factorization of LAPACK's that has no form here": (
        "geqrf linalg_eig linalg_householder_product linalg_ldl_factor_ex linalg_ldl_solve linalg_lstsq linalg_lu"
        " linalg_lu_solve linalg_matrix_exp linalg_matrix_sqrth linalg_polar lu_unpack ormqr"
    ),
    "a function of mathematical physics that has no form here": (
        "special_airy_ai special_bessel_y0 special_bessel_y1 special_modified_bessel_k0 special_modified_bessel_k1"
        " special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1"
    ),
    "a kernel of one back end of PyTorch, which programs for others do not hold": (
        "batch_norm_elemt batch_norm_gather_stats batch_norm_gather_stats_with_counts batch_norm_stats"
        " batch_norm_update_stats conv_depthwise3d convolution_overrideable slow_conv3d_forward slow_conv_dilated2d"
        " slow_conv_dilated3d slow_conv_transpose2d slow_conv_transpose3d"
    ),
}
REASONS = {name: why for why, names in _REASONS.items() for name in names.split()}
"""The name of an operator that has no row -> why it has none."""


def row(names: str, function: Callable[..., Any]) -> None:
    """Add one function for one or several operators, named with blanks between; a later one replaces it."""
    for name in names.split():
        TABLE[name] = function
