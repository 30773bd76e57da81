# pyright: reportMissingImports=false
"""Programs of PyTorch beside weft, where torch is installed: `make test-frontends` does."""

from __future__ import annotations

import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft.__main__ import main as command
from weft.frontend.torch.table import REASONS, TABLE, reason

torch = pytest.importorskip("torch", reason="torch is large: make test-frontends installs it")
nn = torch.nn


class Block(nn.Module):
    """A block of a transformer with what else is common."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Linear(8, 16), nn.LayerNorm(16)
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True)

    def forward(self, x: Any) -> Any:
        y = self.norm(nn.functional.gelu(self.first(x)))
        y = y + self.attention(y, y, y, need_weights=False)[0]
        return torch.softmax(y, -1), y[:, -1], y.cumsum(1)


class Images(nn.Module):
    """Convolutions, norms and pooling."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 8, 3, 2, 1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 8, 3, groups=8),
            nn.GroupNorm(2, 8),
            nn.SiLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(8, 5),
        )

    def forward(self, x: Any) -> Any:
        return self.net(x)


def compared(module: weft.IRModule, net: Any, *inputs: Any) -> None:
    wanted = net(*inputs)
    found = weft.compile(module)["main"](*(x.numpy() for x in inputs))
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    found = found if isinstance(found, tuple) else (found,)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_dynamic_sizes_are_symbols_with_bounds() -> None:
    net = Block().eval()
    dims = {0: torch.export.Dim("b", max=64), 1: torch.export.Dim("s", min=2, max=512)}
    program = torch.export.export(net, (torch.randn(2, 5, 8),), dynamic_shapes={"x": dims})
    module = weft.frontend.torch.from_exported(program)
    assert not module.import_report().fallbacks
    assert sorted(module["main"].attrs["tir_var_upper_bound"].values()) == [64, 512]
    for size in ((2, 5, 8), (3, 7, 8)):
        compared(module, net, torch.randn(*size))


def test_sizes_that_nobody_named_are_called_by_the_input_and_its_axis() -> None:
    class Net(nn.Module):
        def forward(self, ids: Any, mask: Any) -> Any:
            return ids * mask[:, None], mask.sum()

    dynamic = torch.export.Dim.DYNAMIC
    sizes = {"ids": {0: dynamic, 1: dynamic}, "mask": {0: dynamic}}
    program = torch.export.export(Net(), (torch.randn(2, 5), torch.randn(2)), dynamic_shapes=sizes)
    module = weft.frontend.torch.from_exported(program)
    assert 'ids: R.Tensor(("ids_0", "ids_1"), "float32"), mask: R.Tensor(("ids_0",), "float32")' in module.script()
    assert weft.frontend.torch.check(program, sizes={"ids_0": 4, "ids_1": 3}).equal


def test_images() -> None:
    net = Images().eval()
    program = torch.export.export(net, (torch.randn(2, 3, 32, 32),), dynamic_shapes={"x": {0: torch.export.Dim("b")}})
    module = weft.frontend.torch.from_exported(program)
    assert not module.import_report().fallbacks
    for batch in (1, 3):
        compared(module, net, torch.randn(batch, 3, 32, 32))


def fresh(x: Any) -> Any:
    y = x + 1
    z = y * 2
    y.relu_()
    return z, y.add_(x).clamp_(0, 1)


def through_a_view(x: Any) -> Any:
    y = x + 1
    v = y.reshape(-1)
    y.relu_()
    return v * 2


def through_dropout(x: Any) -> Any:
    y = x - 1
    same = nn.functional.dropout(y, training=False)
    y.relu_()
    return same * 1


def read_later(x: Any) -> Any:
    y = x - 1
    z = y.relu_()
    return y * 2, z


def through_the_input(x: Any) -> Any:
    y = x * 1
    return x.relu_() + y


@pytest.mark.parametrize(
    ("function", "ready"),
    [(fresh, True), (through_a_view, False), (through_dropout, False), (read_later, True), (through_the_input, False)],
)
def test_writes_in_place_count_where_something_else_shows_them(function: Any, ready: bool) -> None:
    from weft.frontend.torch.functional import is_ready

    class Net(nn.Module):
        def forward(self, x: Any) -> Any:
            return function(x)

    program = torch.export.export(Net(), (torch.randn(2, 3),))
    assert is_ready(program.graph) == ready
    x = torch.randn(2, 3)
    wanted = function(x.clone())
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    found = weft.interpret(weft.frontend.torch.from_exported(program))["main"](x.numpy())
    found = found if isinstance(found, tuple) else (found,)
    for a, b in zip(found, wanted, strict=False):  # the input that changed comes last
        np.testing.assert_allclose(a, b.numpy(), rtol=1e-6)


class Rare(nn.Module):
    """An operator without a row."""

    def forward(self, x: Any) -> Any:
        return torch.exp(torch.linalg.matrix_exp(x) * 0.1)


def test_what_has_no_row_runs_in_pytorch_and_reads_back() -> None:
    program = torch.export.export(Rare(), (torch.randn(2, 3, 3),))
    module = weft.frontend.torch.from_exported(program)
    (fallback,) = module.import_report().fallbacks
    assert fallback.why == "a factorization of LAPACK's that has no form here"
    compared(module, Rare(), torch.randn(2, 3, 3))
    compared(weft.parse(module.script()), Rare(), torch.randn(2, 3, 3))


def test_torch_compile_serves_all_sizes_with_one_graph() -> None:
    from weft.frontend.torch.backend import compile_graph

    net = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 4)).eval()
    graphs: list[Any] = []
    first = 0

    def counted(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return compile_graph(graph, inputs)

    with torch.no_grad():
        fast = torch.compile(net, backend=counted, dynamic=True)
        for size in ((2, 5, 8), (3, 7, 8), (4, 9, 8)):
            x = torch.randn(*size)
            torch.testing.assert_close(fast(x), net(x), rtol=1e-4, atol=1e-5)
            first = first or len(graphs)  # PyTorch may begin again while it traces the first call
    assert len(graphs) == first


def test_graphs_that_hold_constants_are_compiled() -> None:
    from weft.frontend.torch.backend import compile_graph

    def filled(x: Any) -> Any:
        x[:, 0] = 7
        return x * torch.tensor(3.0) + torch.tensor([1.0, 2.0])

    with torch.no_grad():
        fast = torch.compile(filled, backend=compile_graph, dynamic=True)
        for size in (5, 3):
            given, wanted = torch.ones(size, 2), torch.ones(size, 2)
            torch.testing.assert_close(fast(given), filled(wanted))
            torch.testing.assert_close(given, wanted)


def test_gradients_fall_back_to_eager() -> None:
    from weft.frontend.torch.backend import compile_graph

    net = nn.Linear(4, 3)
    fast = torch.compile(net, backend=compile_graph)
    fast(torch.randn(2, 4)).sum().backward()
    assert net.weight.grad is not None


class Counter(nn.Module):
    """A buffer and an input that change."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("step", torch.ones(()))

    def forward(self, x: Any, y: Any) -> Any:
        self.count += self.step
        y.add_(1)
        return x + self.count, None, x.shape[0]


def test_buffers_that_a_program_changes_are_state() -> None:
    program = torch.export.export(Counter(), (torch.randn(2), torch.zeros(3)))
    module = weft.frontend.torch.from_exported(program)
    main, x, y = weft.compile(module)["main"], np.zeros(2, "float32"), np.zeros(3, "float32")
    state = weft.frontend.torch.state(program)
    assert list(state) == ["count"]
    count = state["count"]
    for call in (1, 2):
        result, none, size, y, count = main(x, y, count)
        assert none is None
        assert size == 2
        assert result.tolist() == [call, call]
        assert y.tolist() == [call] * 3


class Flow(nn.Module):
    """Branches and loops."""

    def forward(self, x: Any, n: Any) -> Any:
        from torch._higher_order_ops import scan, while_loop
        from torch._higher_order_ops.map import map as mapped

        chosen = torch.cond(x.sum() > 0, lambda a: a + 1, lambda a: a * 2, (x,))
        zero = torch.zeros((), dtype=torch.int64)
        index, grown = while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a * 2), (zero, x))
        last, rows = scan(lambda c, v: (c + v, c * v), torch.zeros(3), x)
        return chosen, index, grown, last, rows, mapped(lambda v, w: v * w, x, grown[0])


def test_control_flow_becomes_branches_and_loops() -> None:
    batch = torch.export.Dim("batch", min=1, max=64)
    program = torch.export.export(Flow(), (torch.randn(5, 3), torch.tensor(4)), dynamic_shapes=({0: batch}, None))
    module = weft.frontend.torch.from_exported(program)
    assert not module.import_report().fallbacks
    assert '"batch"' in module.script()  # as the user calls it
    assert module.script().count("R.loop(") == 3
    for rows, count in ((5, 4), (2, 0)):
        compared(module, Flow(), torch.randn(rows, 3), torch.tensor(count))


class Computed(nn.Module):
    """Sizes that the program computes, also of the contents of tensors."""

    def forward(self, x: Any, mask: Any) -> Any:
        half = x.shape[0] // 2
        chosen = x[mask]
        return x[:half] * x.shape[0], chosen * 2, torch.nonzero(mask)


def test_sizes_that_only_the_run_can_tell_are_symbols() -> None:
    batch = 2 * torch.export.Dim("half", min=2, max=32)
    inputs = torch.randn(6, 3), torch.tensor([True, False, True, True, False, False])
    program = torch.export.export(Computed(), inputs, dynamic_shapes=({0: batch}, {0: batch}))
    module = weft.frontend.torch.from_exported(program)
    assert not module.import_report().fallbacks
    compared(module, Computed(), *inputs)
    compared(module, Computed(), torch.randn(4, 3), torch.tensor([False, False, True, False]))


class Rearranged(nn.Module):
    """Sizes of contents, in shapes that are written out afterwards."""

    def forward(self, x: Any, mask: Any) -> Any:
        rows, columns = torch.nonzero(mask, as_tuple=True)
        chosen = torch.masked_select(x, mask)
        return rows, columns + rows.shape[0], chosen.reshape(-1, 1), torch.nonzero(mask) + 1, x[rows].unsqueeze(0)


def test_sizes_of_contents_are_known_in_the_shapes_that_are_written_with_them() -> None:
    inputs = torch.randn(4, 4), torch.rand(4, 4) > 0.5
    module = weft.frontend.torch.from_exported(torch.export.export(Rearranged(), inputs))
    assert not module.import_report().fallbacks
    assert not weft.verify(module)
    for mask in (inputs[1], torch.rand(4, 4) > 0.7, torch.zeros(4, 4, dtype=torch.bool)):
        compared(module, Rearranged(), inputs[0], mask)


def test_weights_may_be_parameters() -> None:
    net = nn.Linear(16, 8).eval()
    program = torch.export.export(net, (torch.randn(2, 16),))
    module = weft.frontend.torch.from_exported(program, weights="parameters")
    weights = weft.frontend.torch.parameters(program)
    assert [array.shape for array in weights.values()] == [(8, 16)]
    x = torch.randn(2, 16)
    found = weft.compile(module)["main"](x.numpy(), *weights.values())
    np.testing.assert_allclose(found, net(x).detach().numpy(), rtol=1e-4, atol=1e-5)


class Pools(nn.Module):
    """Pools that say where the greatest elements stand."""

    def forward(self, x: Any, samples: Any) -> Any:
        functional = nn.functional
        one = functional.max_pool2d(x, 3, 2, 1, return_indices=True)
        two = functional.fractional_max_pool2d(
            x, (2, 3), output_size=(4, 3), return_indices=True, _random_samples=samples
        )
        return *one, *two, *functional.max_pool1d(x[0], 2, return_indices=True)


def test_options_that_only_keywords_give_are_read() -> None:
    class Sorted(nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.argsort(x, dim=0, descending=True, stable=True), torch.sort(x, dim=0, stable=True)[1]

    x = torch.randn(4, 2)
    compared(weft.frontend.torch.from_exported(torch.export.export(Sorted(), (x,))), Sorted(), x)


def test_operators_without_rows_have_reasons() -> None:
    assert callable(weft.frontend.torch.from_exported)  # the rows are there with it
    core = {
        name.removeprefix("aten::").partition(".")[0]
        for name in torch._C._dispatch_get_all_op_names()
        if name.startswith("aten::") and torch.Tag.core in _operator(name).tags
    }
    numbers = {"_local_scalar_dense", "sym_numel", "sym_size", "sym_stride"}  # sizes and numbers, which `numbers` reads
    assert {name for name in core - numbers if name not in TABLE and reason(name) is None} == set()


def test_functional_operators_have_a_row_a_reason_or_a_definition_of_pytorch() -> None:
    schemas = [schema for schema in torch._C._jit_get_all_schemas() if schema.name.startswith("aten::")]
    every = {_base(schema) for schema in schemas}
    functional = {_base(schema) for schema in schemas if not _writes(schema) and _takes_tensors(schema)}
    assert len(functional) > 1000
    taken_apart = {getattr(operator, "_opname", "") for operator in torch._decomp.decomposition_table}
    taken_apart |= {getattr(operator, "_opname", "") for operator in torch.export.default_decompositions()}
    left = {name for name in functional - taken_apart if name not in TABLE and reason(name) is None}
    assert {name for name in left if not _is_composite(name)} == set()
    assert [form for form in REASONS if not fnmatch.filter(every, form)] == []  # none is of another version
    assert [form for form in REASONS if fnmatch.filter(TABLE, form)] == []


def _base(schema: Any) -> str:
    return schema.name.removeprefix("aten::")


def _writes(schema: Any) -> bool:
    return any(item.alias_info is not None and item.alias_info.is_write for item in schema.arguments)


def _takes_tensors(schema: Any) -> bool:
    return any("Tensor" in str(item.type) for item in (*schema.arguments, *schema.returns))


def _is_composite(name: str) -> bool:
    """Whether PyTorch defines an overload by other operators."""
    packet = getattr(torch.ops.aten, name)
    names = [getattr(packet, overload).name() for overload in packet.overloads()]
    kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    return any(kernel(full, "CompositeImplicitAutograd") for full in names)


def _operator(name: str) -> Any:
    base, _, overload = name.removeprefix("aten::").partition(".")
    packet = getattr(torch.ops.aten, base)
    return getattr(packet, overload or "default")


def test_distances_of_pairs_and_filled_tensors_are_native() -> None:
    class Pairs(nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.pdist(x), torch.pdist(x, 1.0), torch.fill(x, 2.5), torch.ops.aten.fill.Tensor(x, x.sum())

    x = torch.randn(7, 3)
    module = weft.frontend.torch.from_exported(torch.export.export(Pairs(), (x,)))
    assert not module.import_report().fallbacks
    compared(module, Pairs(), x)


def test_distinct_slices_and_runs_are_native() -> None:
    class Net(nn.Module):
        def forward(self, x: Any) -> Any:
            rows = torch.unique(x, dim=0, return_inverse=True, return_counts=True)
            return *rows, *torch.unique_consecutive(x, return_inverse=True, return_counts=True)

    x = torch.tensor([[2.0, 3, 3], [1, 0, 0], [2, 3, 3]])
    module = weft.frontend.torch.from_exported(torch.export.export(Net(), (x,)))
    assert not module.import_report().fallbacks
    compared(module, Net(), x)


def test_pools_with_indices_are_native_for_every_size() -> None:
    batch, height = torch.export.Dim("batch", max=64), torch.export.Dim("height", min=6, max=64)
    example = (torch.randn(2, 3, 8, 7), torch.rand(2, 3, 2))
    shapes = ({0: batch, 2: height}, {0: batch})
    module = weft.frontend.torch.from_exported(torch.export.export(Pools(), example, dynamic_shapes=shapes))
    assert not module.import_report().fallbacks
    for count, rows in ((2, 8), (3, 11)):
        compared(module, Pools(), torch.randn(count, 3, rows, 7), torch.rand(count, 3, 2))


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (nn.LSTM, {"num_layers": 2, "bidirectional": True, "batch_first": True}),
        (nn.GRU, {"num_layers": 2}),
        (nn.RNN, {"bidirectional": True, "bias": False, "nonlinearity": "relu"}),
    ],
)
def test_recurrent_layers_are_layers(kind: Any, options: dict[str, Any]) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = kind(3, 4, **options)

        def forward(self, x: Any) -> Any:
            y, state = self.layer(x)
            return (y, *state) if isinstance(state, tuple) else (y, state)

    net, x = Net().eval(), torch.randn(70, 2, 3)
    module = weft.frontend.torch.from_exported(torch.export.export(net, (x,)))
    assert not module.import_report().fallbacks
    assert len(module.script()) < 20_000  # the steps are not written out
    compared(module, net, x)


def test_a_saved_program_is_imported_and_checked_from_the_command_line(tmp_path: Path, capsys: Any) -> None:
    batch = torch.export.Dim("batch", min=1, max=64)
    program = torch.export.export(
        nn.Sequential(nn.Linear(4, 3), nn.Tanh()), (torch.randn(2, 4),), dynamic_shapes=({0: batch},)
    )
    path = tmp_path / "net.pt2"
    torch.export.save(program, path)
    assert command(["import", str(path), "-o", str(tmp_path / "net.py"), "--check"]) == 0
    assert "equal to PyTorch" in capsys.readouterr().out
    assert command(["check", str(tmp_path / "net.py")]) == 0
    (tmp_path / "bad.pt2").write_bytes(b"no program")
    assert command(["import", str(tmp_path / "bad.pt2")]) == 1


def test_the_check_names_the_first_node_that_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    from weft.script import relax as R

    program = torch.export.export(nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Softplus()), (torch.randn(2, 4),))
    assert weft.frontend.torch.check(program).equal
    monkeypatch.setitem(weft.frontend.torch.TABLE, "tanh", lambda n, x: R.sin(x))
    result = weft.frontend.torch.check(program)
    assert not result.equal
    assert "tanh" in result.first


def test_what_pytorch_raises_is_an_error_that_names_the_operator() -> None:
    class Draw(nn.Module):
        def forward(self, chances: Any) -> Any:
            return torch.multinomial(chances, 2)

    module = weft.frontend.torch.from_exported(torch.export.export(Draw(), (torch.rand(4),)))
    assert "generator" in module.import_report().fallbacks[0].why
    with pytest.raises(weft.ModelError, match=r"W978: PyTorch cannot run aten\.multinomial\.default: RuntimeError"):
        weft.interpret(module)["main"](-np.ones(4, "float32"))


@pytest.mark.parametrize("correction", [0, 0.5, 1, 3, 7])
def test_variances_over_what_a_correction_leaves(correction: float) -> None:
    class Variance(nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.var(x, 0, correction=correction), torch.std_mean(x, dim=1, correction=correction)

    net, x = Variance(), torch.linspace(-1, 2, 12).reshape(3, 4)
    program = torch.export.export(net, (x,), dynamic_shapes=({0: torch.export.Dim("n", min=2, max=9)},))
    run = weft.compile(weft.frontend.torch.from_exported(program))["main"]
    for rows in (x, x[:2]):
        found, wanted = run(rows.numpy()), net(rows)
        np.testing.assert_allclose(found[0], wanted[0], rtol=1e-5)
        np.testing.assert_allclose(found[1][0], wanted[1][0], rtol=1e-5)


def test_functions_over_batches_and_sparse_tensors_are_imported() -> None:
    class Net(nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            return torch.func.vmap(lambda a, b: (a @ b).relu())(x, y), torch.sparse.mm(torch.eye(4).to_sparse(), x[0])

    sizes = {0: torch.export.Dim("b", min=2)}
    program = torch.export.export(
        Net(), (torch.randn(3, 4, 5), torch.randn(3, 5, 2)), dynamic_shapes={"x": sizes, "y": sizes}
    )
    module = weft.frontend.torch.from_exported(program)
    assert {row.operator.split(".")[1] for row in module.import_report().fallbacks} == {"_to_sparse", "_sparse_addmm"}
    compared(module, Net(), torch.randn(4, 4, 5), torch.randn(4, 5, 2))


def test_what_pytorch_cannot_take_apart_is_one_error() -> None:
    class Net(nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.func.grad(lambda y: (y.sin() * y).sum())(x)

    program = torch.export.export(Net(), (torch.randn(3),))
    with pytest.raises(weft.errors.ModelError, match="W977: PyTorch cannot take the program apart"):
        weft.frontend.torch.from_exported(program)


@pytest.mark.parametrize("masked", [False, True])
def test_attention_whose_scores_are_a_graph_is_native(masked: bool) -> None:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    slopes = torch.tensor([0.5, 0.25])

    def score(value: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
        return torch.where(i >= j, value + slopes[h] * (j - i), -float("inf"))

    def mask(b: Any, h: Any, i: Any, j: Any) -> Any:
        return (i >= j) & (i - j < 4) & (i != 3)  # nothing for one row

    class Net(nn.Module):
        def forward(self, q: Any, k: Any, v: Any) -> Any:
            if not masked:
                return flex_attention(q, k[:, :1], v[:, :1], score_mod=score, enable_gqa=True)
            blocks = create_block_mask(mask, None, None, 16, 16, device="cpu")
            return flex_attention(q, k, v, block_mask=blocks)

    batch = {0: torch.export.Dim("b", min=2)}
    given = tuple(torch.randn(3, 2, 16, 8) for _ in range(3))
    program = torch.export.export(Net(), given, dynamic_shapes={"q": batch, "k": batch, "v": batch})
    module = weft.frontend.torch.from_exported(program)
    assert not module.import_report().fallbacks
    compared(module, Net(), *(torch.randn(5, 2, 16, 8) for _ in range(3)))


def test_attention_whose_scores_read_rows_of_buffers_is_refused() -> None:
    from torch.nn.attention.flex_attention import flex_attention

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("table", torch.randn(2, 16, 16))

        def forward(self, q: Any) -> Any:
            return flex_attention(q, q, q, score_mod=lambda value, b, h, i, j: value + self.table[h][i][j])

    program = torch.export.export(Net(), (torch.randn(1, 2, 16, 8),))
    with pytest.raises(weft.errors.ModelError, match=r"aten\.index\.Tensor in a graph of one score"):
        weft.frontend.torch.from_exported(program)
