"""The table of ATen operators: one row for each, a function from a node and its arguments to an expression of ours.

    row("relu", lambda n, x: R.nn.relu(x))                    every overload
    row("add", add)                                           arguments as the operator's definition says

Tensors come as expressions, sizes as dimensions, everything else as it is. A row returns an expression, a tuple of them
(one for each result), or a dimension. `weft.frontend.emitter.Unsupported` says why a node has no native form. An
operator without a row is taken apart by PyTorch's own definition, or `REASONS` says why it runs in PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any

__all__ = ["REASONS", "TABLE", "reason", "row"]

TABLE: dict[str, Callable[..., Any]] = {}
"""The name of an operator without its overload -> its row."""


_REASONS = {
    "the memory of a tensor is what it is about, and values have none": (
        "_copy_from* _has_same_storage_numel _new_zeros_with_same_feature_meta _pin_memory _resize_output cpu cuda"
        " element_size from_file is_contiguous is_non_overlapping_and_dense is_pinned is_set_to is_strides_like_format"
        " pin_memory record_stream resize resize_ retain_grad set set_ set_data storage_offset sym_is_contiguous"
        " sym_storage_offset data get_device output_nr _version _debug_has_internal_overlap is_leaf"
    ),
    "it takes tensors of PyTorch's quantized dtypes: export with pt2e, whose integers are tensors of their own": (
        "_empty_affine_quantized _empty_per_channel_affine_quantized _make_per_channel_quantized_tensor"
        " _make_per_tensor_quantized_tensor dequantize empty_quantized int_repr q_per_channel_axis"
        " q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point qscheme quantize_per_tensor_dynamic"
        " quantized_* _add_relu"
    ),
    "its numbers are those of PyTorch's own generator": (
        "_dirichlet_grad _philox_* _sample_dirichlet _standard_gamma* binomial cauchy exponential feature_alpha_dropout"
        " geometric log_normal normal_functional random rrelu_with_noise rrelu_with_noise_functional uniform"
        " _fused_dropout _sobol_engine_draw alpha_dropout"
    ),
    "a factorization of LAPACK's that has no form here": (
        "_cholesky_solve_helper _compute_linear_combination _linalg_eigvals geqrf linalg_eig linalg_eigvals"
        " linalg_householder_product linalg_ldl_factor_ex linalg_ldl_solve linalg_lstsq linalg_lu linalg_lu_solve"
        " linalg_matrix_exp linalg_matrix_sqrth linalg_polar lu_unpack ormqr"
    ),
    "a function of mathematical physics that has no form here": (
        "igamma igammac special_airy_ai special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1"
        " special_erfcx special_gammainc special_gammaincc special_modified_bessel_k0 special_modified_bessel_k1"
        " special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1 special_spherical_bessel_j0 special_zeta"
    ),
    "a kernel of one back end of PyTorch, which programs for others do not hold": (
        "_conv_depthwise2d _cslt_* _cudnn_* _dyn_quant_* _efficient_attention_* _flash_attention_* _fused_sdp_choice"
        " _grid_sampler_2d_cpu_fallback* _lstm_mps _mixed_dtypes_linear _mkldnn_* _mps_* _nnpack_spatial_convolution"
        " _scaled_dot_product_attention_math_for_mps _scaled_dot_product_cudnn_attention*"
        " _scaled_dot_product_efficient_attention* _scaled_dot_product_flash_attention"
        " _scaled_dot_product_flash_attention_backward _scaled_dot_product_fused_attention_overrideable*"
        " _scaled_grouped_mm* _scaled_mm* _slow_conv2d_* _thnn_fused_* _triton_* _use_cudnn_ctc_loss"
        " _use_miopen_ctc_loss _weight_int4pack_mm _weight_int4pack_mm_with_scales_and_zeros batch_norm_backward_elemt"
        " batch_norm_backward_reduce batch_norm_elemt batch_norm_gather_stats batch_norm_gather_stats_with_counts"
        " batch_norm_stats batch_norm_update_stats conv_depthwise3d convolution_backward_overrideable"
        " convolution_overrideable cudnn_affine_grid* cudnn_convolution* cudnn_grid* fbgemm_* linear_backward"
        " lstm_mps_backward matmul_backward max_pool2d_backward miopen_* mkldnn_* mps_* slow_conv3d_forward"
        " slow_conv_dilated2d slow_conv_dilated3d slow_conv_transpose2d slow_conv_transpose3d to_mkldnn*"
        " _wrapped_linear_prepack _wrapped_quantized_linear_prepacked choose_qparams_optimized _saturate_weight_to_fp16"
    ),
    "it packs weights in an order that is PyTorch's own": (
        "_convert_weight_to_int4pack _convert_weight_to_int4pack_for_cpu _weight_int4pack_mm_for_cpu"
    ),
    "a sparse tensor, of which there are none here": (
        "_coalesce _coalesced _convert_indices_* _dimI _dimV _indices _indices_copy _nnz _sparse_* _spdiags _spsolve"
        " _to_sparse* _validate_* _values _values_copy ccol_indices* col_indices* copy_sparse_to_sparse crow_indices*"
        " coalesce dense_dim hspmm indices indices_copy is_coalesced resize_as_sparse row_indices* smm sparse_*"
        " sspaddmm to_sparse* values values_copy native_norm"
        " _embedding_bag_sparse_backward embedding_sparse_backward _gather_sparse_backward"
    ),
    "rows of unequal length (nested tensors), of which there are none here": (
        "_jagged_to_padded_dense_forward _nested_* _padded_dense_to_jagged_forward nested_to_padded_tensor"
        " to_padded_tensor"
    ),
    "derivatives in forward mode, or the bookkeeping of gradients: programs hold those that have been derived": (
        "_fw_primal* _make_dual* _unpack_dual backward dist_backward get_gradients glu_backward_jvp glu_jvp grad"
        " slice_inverse"
    ),
    "a gradient that has no form here": (
        "_ctc_loss_backward _embedding_bag_backward _embedding_bag_dense_backward"
        " _embedding_bag_per_sample_weights_backward _fake_quantize_learnable_*_backward"
        " _masked_softmax_backward _pdist_backward _scaled_dot_product_flash_attention_for_cpu_backward"
        " _segment_reduce_backward _upsample_*_aa_backward _weight_norm_interface_backward grid_sampler_2d_backward"
        " grid_sampler_3d_backward multi_margin_loss_backward multilabel_margin_loss_backward"
    ),
    "what an optimizer or an observer does to its state, outside of a program": (
        "_amp_* _fused_adagrad _fused_adam _fused_adamw _fused_moving_avg_obs_fq_helper_functional _fused_sgd"
        " _no_grad_embedding_renorm_ embedding_renorm"
    ),
    "its shape, or what a program does next, depends on values that are not there while the program is traced": (
        "_ctc_loss _histogramdd_* _pack_padded_sequence _pack_sequence allclose equal histogram is_nonzero"
    ),
    "a short way of eager PyTorch, which programs do not take": (
        "_masked_scale _masked_softmax _transform_bias_rescale_qkv"
    ),
    "a check, which an import leaves out": (
        "_assert_async _assert_tensor_metadata _functional_assert_* _functional_sym_* _linalg_check_errors"
    ),
    "a value of Python's, which programs of TorchScript compute while they run, and exported ones have": (
        "Bool Complex ComplexImplicit Float FloatImplicit Int IntImplicit ScalarImplicit __contains__ __getitem__"
        " __interpolate __upsample* _list_to_tensor _local_scalar_dense _tensor_to_list as_tensor count dict get items"
        " keys len range sorted tensor"
    ),
    "it is there for PyTorch's own passes or tests": (
        "_efficientzerotensor _foobar _grad_sum_to_size _make_dep_token _ncf_unsqueeze _ncf_view _test_* hash_tensor"
    ),
}
REASONS = {name: why for why, names in _REASONS.items() for name in names.split()}
"""The name of an operator that has no row, or what such names look like -> why it has none."""


def reason(name: str) -> str | None:
    """Why an operator has no row, None where that is not known.

    >>> reason("_sparse_mm"), reason("relu")
    ('a sparse tensor, of which there are none here', None)
    """
    if name in TABLE:
        return None
    return REASONS.get(name) or next((why for form, why in REASONS.items() if fnmatchcase(name, form)), None)


def row(names: str, function: Callable[..., Any]) -> None:
    """Add one function for one or several operators, named with blanks between; a later one replaces it."""
    for name in names.split():
        TABLE[name] = function
