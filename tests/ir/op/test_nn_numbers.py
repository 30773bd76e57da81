"""Numbers of the reducing and neural-network operators where care is needed, and other checks of their meaning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.ir.op.running import apply, reference

import weft
from weft.errors import BoundsError, ShapeError
from weft.script import relax as R


def f32(values: Any) -> np.ndarray:
    return np.asarray(values, "float32")


# ---------------------------------------------------------------------------------------------------------------------
# Reductions
# ---------------------------------------------------------------------------------------------------------------------


def test_softmax_neither_overflows_nor_underflows() -> None:
    result = apply("nn.softmax", f32([[1000, 1000, -1000], [-1e30, 0, 0]]))
    np.testing.assert_allclose(result, [[0.5, 0.5, 0], [0, 0.5, 0.5]])


def test_log_softmax_of_far_apart_values_is_their_distance() -> None:
    np.testing.assert_allclose(apply("nn.log_softmax", f32([[0, 200], [5e4, 5e4]])), [[-200, 0], [-np.log(2)] * 2])


def test_variance_is_exact_far_from_zero() -> None:
    """A one-pass variance would lose every digit."""
    values = f32([1e4, 1e4 + 1, 1e4 + 2, 1e4 + 3])
    np.testing.assert_allclose(apply("variance", values), 1.25)
    np.testing.assert_allclose(apply("std", values), np.sqrt(1.25), rtol=1e-6)


def test_the_variance_of_integers_is_the_greatest_one_where_it_is_beyond_all() -> None:
    values = np.array([-128, 127, -128, 127], "int8")
    for found in (apply("variance", values), reference("variance", values)):
        assert found.dtype == np.int8
        assert found == 127


def test_float16_sums_are_accumulated_in_float32() -> None:
    ones = np.ones(4096, "float16")
    assert apply("sum", ones) == 4096  # in float16 the sum would stop at 2048
    assert apply("mean", np.full(4096, 100, "float16")) == 100  # in float16 the sum would be infinite
    assert apply("matmul", ones, ones) == 4096
    np.testing.assert_array_equal(apply("cumsum", ones)[-1], np.float16(4096))


def test_weighted_bags_of_float16_are_rounded_once() -> None:
    @R.function
    def bags(w: R.Tensor((2, 1), "float16"), i: R.Tensor((2,), "int64"), k: R.Tensor((2,), "float16")):
        return R.nn.embedding_bag(w, i, R.const([0], "int64"), k, mode="sum")

    little = 2.0**-10
    weight, factors = np.array([[1 + little], [-1 - 2 * little]], "float16"), np.array([1 + little, 1], "float16")
    assert weft.compile(bags)["main"](weight, np.array([0, 1]), factors).tolist() == [[little**2]]


def test_extremes_of_equal_values_are_the_first_and_nan_wins() -> None:
    values = f32([[1, 3, 3, 2], [np.nan, 9, np.nan, 0], [-np.inf] * 4, [np.inf, 1, np.inf, 1]])
    assert apply("argmax", values, axis=1).tolist() == [1, 0, 0, 0]
    assert apply("argmin", values, axis=1).tolist() == [0, 0, 0, 1]
    assert apply("argmax", values, axis=1).dtype == np.int64
    assert np.isnan(apply("max", values, axis=1)[1])
    assert np.isnan(apply("min", values, axis=1)[1])
    middle, positions = apply("median", values, axis=1)
    assert np.isnan(middle[1])
    assert positions.tolist() == [3, 2, 1, 3]  # the lower of two, the last nan, the first of equal ones counts least


def test_the_position_in_a_whole_tensor_counts_its_elements_in_order() -> None:
    values = np.random.default_rng(0).permutation(24).reshape(2, 3, 4).astype("int32")
    assert apply("argmax", values) == np.argmax(values)
    assert apply("argmin", values, keepdims=True).shape == (1, 1, 1)


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin", "median"])
def test_the_extreme_of_nothing_is_an_error_when_deduced_and_when_run(name: str) -> None:
    with pytest.raises(ShapeError, match="reduction of nothing"):
        apply(name, np.zeros((2, 0), "float32"), axis=1)
    with pytest.raises(ShapeError, match="reduction of nothing"):
        apply(name, np.zeros((2, 0), "float32"), axis=1, symbolic=True)
    nothing = apply(name, np.zeros((0, 2), "float32"), axis=1, symbolic=True)
    assert (nothing[0] if name == "median" else nothing).shape == (0,)


def test_the_greatest_sum_of_an_empty_matrix_is_an_error_for_the_interpreter_as_for_compiled_code() -> None:
    module = weft.parse(
        "@R.function\ndef main(x: R.Tensor((3, 'n'), 'float32')):\n    return R.linalg.matrix_norm(x, ord='1')\n"
    )
    for made in (weft.interpret(module), weft.compile(module)):
        assert made["main"](np.ones((3, 2), "float32")) == 3
        with pytest.raises(ShapeError):
            made["main"](np.zeros((3, 0), "float32"))


@pytest.mark.parametrize("symbolic", [False, True])
def test_sums_means_and_products_of_nothing_are_those_of_numpy(symbolic: bool) -> None:
    nothing = np.zeros((2, 0), "float32")
    assert apply("sum", nothing, axis=1, symbolic=symbolic).tolist() == [0, 0]
    assert apply("prod", nothing, axis=1, symbolic=symbolic).tolist() == [1, 1]
    assert np.isnan(apply("mean", nothing, axis=1, symbolic=symbolic)).all()
    assert np.isnan(apply("variance", nothing, axis=1, symbolic=symbolic)).all()
    assert apply("matmul", nothing, np.zeros((0, 3), "float32")).tolist() == [[0] * 3] * 2


# ---------------------------------------------------------------------------------------------------------------------
# Products
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right"),
    [((4,), (4,)), ((4,), (4, 3)), ((2, 4), (4,)), ((5, 2, 4), (4, 3)), ((2, 4), (5, 4, 3)), ((6, 1, 2, 4), (5, 4, 3))],
)
@pytest.mark.parametrize("symbolic", [False, True])
def test_matmul_of_every_rank_is_that_of_numpy(left: tuple[int, ...], right: tuple[int, ...], symbolic: bool) -> None:
    if symbolic and len(left) > 3:
        return  # a batch of 1 is broadcast only where it is known to be 1
    rng = np.random.default_rng(0)
    a, b = rng.random(left, "float32"), rng.random(right, "float32")
    np.testing.assert_allclose(apply("matmul", a, b, symbolic=symbolic), a @ b, rtol=1e-5)


def test_contracted_sizes_that_differ_are_an_error_at_the_call() -> None:
    """The peer returns a wrong answer here."""
    with pytest.raises(ShapeError):
        apply("matmul", np.ones((2, 4), "float32"), np.ones((7, 5), "float32"), symbolic=True)


def test_integers_multiply_in_the_result_type() -> None:
    full = np.full((1, 4), 127, "int8")
    assert apply("matmul", full, full.T, out_dtype="int32").tolist() == [[4 * 127 * 127]]


# ---------------------------------------------------------------------------------------------------------------------
# Activations and normalisation
# ---------------------------------------------------------------------------------------------------------------------


def test_activations_are_finite_at_the_ends() -> None:
    ends = f32([-1e4, -90, 90, 1e4])
    np.testing.assert_allclose(apply("nn.silu", ends), [0, 0, 90, 1e4], atol=1e-30)
    np.testing.assert_allclose(apply("nn.softplus", ends), [0, 0, 90, 1e4], atol=1e-30)
    np.testing.assert_allclose(apply("nn.gelu", ends), [0, 0, 90, 1e4], atol=1e-30)
    np.testing.assert_allclose(apply("nn.gelu_tanh", ends), [0, 0, 90, 1e4], atol=1e-30)
    np.testing.assert_allclose(
        apply("nn.selu", ends)[2:], [90 * 1.0507009873554805, 1e4 * 1.0507009873554805], rtol=1e-6
    )


def test_layer_norm_gives_mean_zero_and_variance_one() -> None:
    x = np.random.default_rng(0).normal(1000, 3, (4, 64)).astype("float32")
    result = apply("nn.layer_norm", x, np.ones(64, "float32"), np.zeros(64, "float32"), axes=[-1], epsilon=0.0)
    np.testing.assert_allclose(result.mean(1), 0, atol=1e-3)
    np.testing.assert_allclose(result.var(1), 1, rtol=1e-3)


def test_one_group_is_layer_norm_and_a_group_per_channel_is_instance_norm() -> None:
    rng = np.random.default_rng(0)
    x = rng.random((2, 6, 5), "float32")
    gamma, beta = rng.random(6, "float32"), rng.random(6, "float32")
    by_channel = apply("nn.instance_norm", x, gamma, beta, channel_axis=1, axes=[2])
    groups = apply("nn.group_norm", x, gamma, beta, num_groups=6, channel_axis=1, axes=[2])
    np.testing.assert_allclose(groups, by_channel, rtol=1e-5)
    one = apply("nn.group_norm", x, f32(np.ones(6)), f32(np.zeros(6)), num_groups=1, channel_axis=1, axes=[2])
    layer = apply("nn.layer_norm", x, f32(np.ones((6, 5))), f32(np.zeros((6, 5))), axes=[1, 2])
    np.testing.assert_allclose(one, layer, rtol=1e-4, atol=1e-5)


def test_batch_norm_moves_statistics_only_in_training() -> None:
    x = f32([[1, 2], [3, 6]])
    one, zero = np.ones(2, "float32"), np.zeros(2, "float32")
    out, mean, var = apply("nn.batch_norm", x, one, zero, zero, one, axis=1, momentum=0.5)
    np.testing.assert_allclose(out, [[-1, -1], [1, 1]], rtol=1e-4)
    np.testing.assert_allclose((mean, var), ([1, 2], [1, 2.5]))
    out, mean, var = apply("nn.batch_norm", x, one, zero, zero, one, axis=1, training=False)
    np.testing.assert_allclose(out, x, rtol=1e-4)
    np.testing.assert_array_equal((mean, var), (zero, one))


# ---------------------------------------------------------------------------------------------------------------------
# Windows
# ---------------------------------------------------------------------------------------------------------------------


def test_convolution_is_the_sum_over_its_window() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.random((2, 3, 6, 5), "float32"), rng.random((4, 3, 3, 2), "float32")
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (0, 0)])
    expected = np.zeros((2, 4, 3, 4), "float32")
    for n, o, h, v in np.ndindex(*expected.shape):
        expected[n, o, h, v] = (padded[n, :, 2 * h : 2 * h + 3, v : v + 2] * w[o]).sum()
    result = apply("nn.conv2d", x, w, strides=[2, 1], padding=[1, 0])
    np.testing.assert_allclose(result, expected, rtol=1e-5)
    nhwc = apply(
        "nn.conv2d",
        x.transpose(0, 2, 3, 1),
        w.transpose(2, 3, 1, 0),
        strides=[2, 1],
        padding=[1, 0],
        data_layout="NHWC",
        kernel_layout="HWIO",
    )
    np.testing.assert_allclose(nhwc.transpose(0, 3, 1, 2), expected, rtol=1e-5)
    symbolic = apply("nn.conv2d", x, w, strides=[2, 1], padding=[1, 0], symbolic=True)
    np.testing.assert_allclose(symbolic, expected, rtol=1e-5)


def test_a_transposed_convolution_is_the_adjoint_of_the_convolution() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.random((1, 3, 7), "float32"), rng.random((4, 3, 3), "float32")
    forward = apply("nn.conv1d", x, w, strides=2, padding=1)
    y = rng.random(forward.shape, "float32")
    back = apply("nn.conv1d_transpose", y, w, strides=2, padding=1)
    np.testing.assert_allclose((forward * y).sum(), (back * x).sum(), rtol=1e-5)


def test_a_window_that_does_not_fit_is_an_error_when_deduced_and_when_run() -> None:
    x, w = np.ones((1, 1, 2), "float32"), np.ones((1, 1, 5), "float32")
    for symbolic in (False, True):
        with pytest.raises(ShapeError):
            apply("nn.conv1d", x, w, symbolic=symbolic)
        with pytest.raises(ShapeError):
            apply("nn.max_pool1d", x, pool_size=5, symbolic=symbolic)


def test_channels_that_differ_are_an_error_at_the_call() -> None:
    with pytest.raises(ShapeError):
        apply("nn.conv1d", np.ones((1, 2, 4), "float32"), np.ones((3, 3, 1), "float32"), symbolic=True)


def test_a_window_over_the_end_joins_what_there_is() -> None:
    x = f32(np.arange(1, 8)).reshape(1, 1, 7)
    options: dict[str, Any] = {"pool_size": 3, "strides": 3, "ceil_mode": True}
    assert apply("nn.max_pool1d", x, **options).tolist() == [[[3, 6, 7]]]
    assert apply("nn.avg_pool1d", x, **options).tolist() == [[[2, 5, 7]]]
    assert apply("nn.max_pool1d", -x, padding=1, pool_size=3, strides=3).tolist() == [[[-1, -3, -6]]]


@pytest.mark.parametrize("symbolic", [False, True])
def test_a_last_window_that_begins_in_the_padding_at_the_end_is_left_out(symbolic: bool) -> None:
    x = np.arange(1, 6, dtype="int8").reshape(1, 1, 5)
    options: dict[str, Any] = {"pool_size": 1, "strides": 3, "padding": [0, 1], "ceil_mode": True}
    for name in ("nn.max_pool1d", "nn.avg_pool1d"):
        assert apply(name, x, symbolic=symbolic, **options).tolist() == [[[1, 4]]]
        assert reference(name, x, **options).tolist() == [[[1, 4]]]
    places = [[[0, 3]]]
    assert apply("nn.max_pool1d_with_indices", x, symbolic=symbolic, **options)[1].tolist() == places
    assert reference("nn.max_pool1d_with_indices", x, **options)[1].tolist() == places
    grad = np.ones((1, 1, 1, 2), "float32")
    options = {"pool_size": (1, 1), "strides": (1, 3), "padding": (0, 0, 0, 1), "ceil_mode": True}
    back = apply("grad.avg_pool2d_backward", grad, np.ones((1, 1, 1, 5), "float32"), symbolic=symbolic, **options)
    assert back.tolist() == [[[[1, 0, 0, 1, 0]]]]


@pytest.mark.parametrize(("dtype", "least"), [("int8", -128), ("uint8", 0), ("float16", -np.inf)])
def test_the_greatest_value_of_a_window_in_the_padding_alone_is_the_least(dtype: str, least: float) -> None:
    x = np.ones((1, 1, 1), dtype)
    for run in (apply, reference):
        assert run("nn.max_pool1d", x, padding=[0, 1]).tolist() == [[[1, least]]]
    for run in (apply, reference):
        assert run("nn.avg_pool1d", x, padding=[0, 1], count_include_pad=False).tolist() == [[[1, 0]]]


def test_padding_counts_only_when_asked() -> None:
    x = np.ones((1, 1, 4), "float32")
    options: dict[str, Any] = {"pool_size": 2, "strides": 2, "padding": 1}
    assert apply("nn.avg_pool1d", x, **options, count_include_pad=True).tolist() == [[[0.5, 1, 0.5]]]
    assert apply("nn.avg_pool1d", x, **options, count_include_pad=False).tolist() == [[[1, 1, 1]]]


def test_a_global_mean_is_an_adaptive_pool_of_one() -> None:
    x = np.random.default_rng(0).random((2, 3, 4, 5), "float32")
    result = apply("nn.adaptive_avg_pool2d", x, output_size=1, symbolic=True)
    np.testing.assert_allclose(result[:, :, 0, 0], x.mean((2, 3)), rtol=1e-5)


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_padding_by_more_than_there_is_is_an_error(mode: str) -> None:
    short = np.ones((1 if mode != "replicate" else 0,), "float32")
    for symbolic in (False, True):
        with pytest.raises(ShapeError, match="too short"):
            apply("nn.pad", short, pad_width=[2, 0], pad_mode=mode, symbolic=symbolic)


# ---------------------------------------------------------------------------------------------------------------------
# Attention and losses
# ---------------------------------------------------------------------------------------------------------------------


def test_a_causal_mask_hides_what_comes_later() -> None:
    rng = np.random.default_rng(0)
    q, k, v = (rng.random((1, 4, 1, 8), "float32") for _ in range(3))
    full = apply("nn.attention", q, k, v, causal_mask="TopLeft")
    first = apply("nn.attention", q[:, :2], k[:, :2], v[:, :2], causal_mask="TopLeft")
    np.testing.assert_allclose(full[:, :2], first, rtol=1e-6)
    np.testing.assert_allclose(full[:, 0], v[:, 0], rtol=1e-6)


def test_a_query_that_sees_no_key_gives_zeros() -> None:
    rng = np.random.default_rng(0)
    q, k, v = (
        rng.random((1, 4, 1, 2), "float32"),
        rng.random((1, 2, 1, 2), "float32"),
        rng.random((1, 2, 1, 2), "float32"),
    )
    result = apply("nn.attention", q, k, v, causal_mask="BottomRight")
    assert np.array_equal(result[:, :2], np.zeros((1, 2, 1, 2)))
    assert np.isfinite(result).all()


def test_grouped_heads_share_keys_and_values() -> None:
    rng = np.random.default_rng(0)
    q, k, v = (rng.random((1, 4, heads, 8), "float32") for heads in (6, 2, 3))
    shared = apply("nn.attention", q, k, v, causal_mask="TopLeft")
    own = apply("nn.attention", q, k.repeat(3, 2), v.repeat(2, 2), causal_mask="TopLeft")
    np.testing.assert_allclose(shared, own, rtol=1e-6)


def test_attention_of_a_uniform_query_is_the_mean_of_the_values() -> None:
    v = np.random.default_rng(0).random((2, 5, 3, 4), "float32")
    result = apply("nn.attention", np.zeros((2, 1, 3, 4), "float32"), v, v)
    np.testing.assert_allclose(result[:, 0], v.mean(1), rtol=1e-5)


@pytest.mark.parametrize(
    ("targets", "lengths", "counts", "says"),
    [
        ([[1, 4]], [3], [2], "not a class"),
        ([[1, -1]], [3], [2], "not a class"),
        ([[1, 1]], [6], [2], "length is out of range"),
        ([[1, 1]], [3], [3], "length is out of range"),
        ([1, 1], [3], [-1], "length is out of range"),
    ],
)
def test_lengths_and_targets_of_sequences_are_checked(targets: Any, lengths: Any, counts: Any, says: str) -> None:
    scores = np.zeros((5, 1, 4), "float32")
    for run in (apply, reference):
        with pytest.raises(BoundsError, match=says):
            run("nn.ctc_loss", scores, np.array(targets), np.array(lengths), np.array(counts))


def test_targets_that_no_path_gives_cost_infinitely_much() -> None:
    scores = np.log(np.full((2, 2, 3), 1 / 3, "float32"))
    given = np.array([[1, 1], [1, 2]]), np.array([2, 2]), np.array([2, 2])
    assert apply("nn.ctc_loss", scores, *given, reduction="none").tolist()[0] == np.inf
    loss = apply("nn.ctc_loss", scores, *given, reduction="none", zero_infinity=True)
    np.testing.assert_allclose(loss, [0, 2 * np.log(3)], rtol=1e-6)  # 1 1 has no room for a blank between


def test_samples_of_a_pool_lie_between_0_and_1() -> None:
    x = np.zeros((1, 1, 5, 5), "float32")
    for sample in (1.0, -0.1, np.nan):
        with pytest.raises(BoundsError, match="sample"):
            apply("nn.fractional_max_pool2d", x, np.full((1, 1, 2), sample, "float32"), pool_size=2, output_size=2)


def test_the_first_nan_of_a_window_is_its_greatest_element() -> None:
    x = np.array([[[1, np.nan, 5, np.nan, 0, -np.inf]]], "float32")
    values, indices = apply("nn.max_pool1d_with_indices", x, pool_size=2, strides=1)
    assert indices.tolist() == [[[1, 1, 3, 3, 4]]]
    np.testing.assert_array_equal(values[0, 0], x[0, 0, indices[0, 0]])


def test_a_target_that_is_no_class_is_a_bounds_error() -> None:
    scores = np.zeros((2, 3), "float32")
    for target in (3, -1):
        with pytest.raises(BoundsError, match="not a class"):
            apply("nn.nll_loss", scores, np.asarray([0, target]))
    assert apply("nn.nll_loss", scores, np.asarray([0, -100])) == 0


def test_the_mean_loss_weighs_by_the_classes_that_count() -> None:
    scores, targets = f32([[-1, -2], [-3, -4], [-5, -6]]), np.asarray([0, 1, 7])
    weights = f32([1, 3])
    loss = apply("nn.nll_loss", scores, targets, weights, ignore_index=7)
    np.testing.assert_allclose(loss, (1 * 1 + 4 * 3) / (1 + 3))


def test_cross_entropy_of_log_probabilities() -> None:
    scores = f32([[-1, -2], [-3, -4]])
    assert apply("nn.cross_entropy_with_logits", scores, f32([[1, 0], [0, 1]])) == 2.5


def test_dropout_at_inference_keeps_everything() -> None:
    x = np.random.default_rng(0).random((2, 3), "float32")
    kept, mask = apply("nn.dropout", x, rate=0.9)
    np.testing.assert_array_equal(kept, x)
    np.testing.assert_array_equal(mask, np.ones((2, 3)))


@pytest.mark.parametrize("name", ["grad.max_pool2d_backward", "grad.avg_pool2d_backward"])
def test_the_gradient_of_a_pool_whose_window_does_not_fit_is_an_error_for_the_reference_too(name: str) -> None:
    nothing = np.zeros((1, 2, 0, 0), "float32")
    with pytest.raises(ValueError, match="the window does not fit"):
        reference(name, nothing, nothing)
    with pytest.raises(ShapeError, match="the window does not fit"):
        apply(name, nothing, nothing, symbolic=True)


@pytest.mark.parametrize("images", [0, 1])
@pytest.mark.parametrize("call", ["resize2d(x, (4, 4), method='nearest_neighbor')", "grid_sample(x, grid)"])
def test_an_empty_image_is_an_error_for_the_reference_too_where_there_are_no_images(call: str, images: int) -> None:
    module = weft.parse(
        "@R.function\ndef main(x: R.Tensor(('b', 1, 'n', 3), 'float32'), grid: R.Tensor(('b', 2, 2, 2), 'float32')):\n"
        f"    return R.image.{call}\n"
    )
    empty, grid = np.zeros((images, 1, 0, 3), "float32"), np.zeros((images, 2, 2, 2), "float32")
    for made in (weft.interpret(module), weft.compile(module)):
        with pytest.raises(ShapeError, match="image is empty"):
            made["main"](empty, grid)
