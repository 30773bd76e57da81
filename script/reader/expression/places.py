"""Where tensors are: virtual devices, meshes, placements."""

from __future__ import annotations

import ast
from typing import Any

from weft.ir.deduction.device_mesh import DeviceMesh, DTensorType, Placement, parse_placement
from weft.ir.node import FrozenMap, replace
from weft.ir.types import TensorType, VDevice
from weft.script.forms.defaults import DEVICE_KINDS
from weft.script.forms.reading import COMMON
from weft.script.forms.syntax import TYPES
from weft.script.reader.device import is_target_kind, why_no_device
from weft.script.reader.expression.arguments import bind_arguments
from weft.script.reader.expression.names import dotted_name
from weft.script.reader.expression.types import _MAX_FIELDS
from weft.script.reader.scope import describe
from weft.script.reader.session import Session
from weft.script.source.diagnostics import did_you_mean

__all__ = ["as_mesh", "checked_device", "read_mesh", "read_placement", "read_vdevice"]


@COMMON.type("R.DTensor")
def _spread_type(session: Session, tree: ast.Call) -> DTensorType:
    values = bind_arguments(session, TYPES["R.DTensor"], tree)
    mesh, placement = values.pop("device_mesh"), values.pop("placement")
    if isinstance(values["shape"], tuple) and values["ndim"] not in (-1, len(values["shape"])):
        raise session.fail("W121", f"ndim={values['ndim']} contradicts the shape of rank {len(values['shape'])}", tree)
    tensor = TensorType(**values, span=session.span(tree))
    given = [keyword.value for keyword in tree.keywords if keyword.arg == "placement"] or tree.args[3:4]
    made = session.fold(lambda: DTensorType(tensor, mesh, placement), given[0] if given else tree)
    return replace(made, span=session.span(tree))


@COMMON.type("I.vdevice")
def _vdevice(session: Session, tree: ast.Call) -> VDevice:
    values = bind_arguments(session, TYPES["I.vdevice"], tree)
    if not is_target_kind(values["target"]):
        place = next((word.value for word in tree.keywords if word.arg == "target"), (tree.args or [tree])[0])
        raise session.fail("W114", f"there is no kind of target {describe(values['target'])}", place)
    return VDevice(**values, span=session.span(tree))


@COMMON.type("R.device_mesh")
def _mesh(session: Session, tree: ast.Call) -> DeviceMesh:
    values = bind_arguments(session, TYPES["R.device_mesh"], tree)
    for name, value in values.items():
        if not isinstance(value, tuple) or not all(type(item) is int and item >= 0 for item in value):
            raise session.fail("W114", f"{name} must be a list of numbers, got {describe(value)}", tree)
    made = session.fold(lambda: DeviceMesh(values["shape"], values["device_ids"]), tree)
    return replace(made, span=session.span(tree))


@COMMON.value("I.Range", "R.Range")
def _form_range(session: Session, tree: ast.Call) -> tuple[int, ...]:
    """`I.Range(0, 4)`: numbers of devices that follow one another."""
    bounds = [session.constant(argument) for argument in tree.args]
    if len(bounds) != 2 or tree.keywords or not all(type(bound) is int for bound in bounds):
        raise session.fail("W113", "I.Range takes the first number and the one after the last", tree)
    if bounds[1] - bounds[0] > _MAX_FIELDS:
        raise session.fail("W103", f"a mesh of more than {_MAX_FIELDS} devices", tree)
    return tuple(range(*bounds))


@COMMON.hole("mesh")
def read_mesh(session: Session, tree: ast.expr) -> DeviceMesh:
    """A mesh of devices: its place among the infos of the module (`"mesh[0]"`), or written out."""
    return as_mesh(session, session.value(tree), tree)


def as_mesh(session: Session, value: Any, tree: ast.AST) -> DeviceMesh:
    """A value as a mesh of devices; W111 for a name that the module does not have."""
    if isinstance(value, str):
        name, _, index = value.partition("[")
        known = [
            f"{key}[{place}]"
            for key, infos in session.module.infos.items()
            for place, info in enumerate(infos if isinstance(infos, tuple) else ())
            if isinstance(info, DeviceMesh)
        ]
        if value not in known:
            hint = did_you_mean(value, known) or f"it has: {', '.join(known) or 'none'}"
            raise session.fail("W111", f"the module has no mesh {value!r}", tree, hint)
        value = session.module.infos[name][int(index[:-1])]
    if not isinstance(value, DeviceMesh):
        raise session.fail("W114", f"expected a mesh of devices, got {describe(value)}", tree)
    return value


@COMMON.hole("placement")
def read_placement(session: Session, tree: ast.expr) -> Placement:
    """Where a tensor is on a mesh: `"S[0], R"`."""
    value = session.constant(tree)
    if not isinstance(value, str):
        raise session.fail("W114", f"expected a placement, got {describe(value)}", tree, 'write "S[0], R"')
    return session.fold(lambda: parse_placement(value), tree)


@COMMON.value("R.device", *(f"R.{kind}" for kind in DEVICE_KINDS.values()))
def _form_device(session: Session, tree: ast.Call) -> VDevice:
    """`R.device(2, 0)`, `R.cuda(0)`: a device of TVM, by the number or name of its kind."""
    name = dotted_name(session, tree.func) or ""
    given = {keyword.arg: session.constant(keyword.value) for keyword in tree.keywords}
    values = [session.constant(argument) for argument in tree.args]
    if name == "R.device":
        kind = given.pop("device_type", None) if not values else values.pop(0)
    else:
        kind = name[2:]
    index = values.pop(0) if values else given.pop("index", given.pop("dev_id", 0))
    kind = DEVICE_KINDS.get(kind, kind)
    if values or given or kind not in DEVICE_KINDS.values() or type(index) is not int:
        known = ", ".join(f"{number} ({text})" for number, text in DEVICE_KINDS.items())
        raise session.fail("W114", f"{name} takes a known kind of device and an index", tree, f"kinds: {known}")
    return VDevice(FrozenMap({"kind": kind}), index, span=session.span(tree))


@COMMON.hole("vdevice")
def read_vdevice(session: Session, tree: ast.expr) -> VDevice | str:
    """A virtual device: its name in the module's infos, or written out."""
    value = session.value(tree)
    if isinstance(value, str):
        return checked_device(session, value, tree)
    if isinstance(value, VDevice):
        return value
    raise session.fail("W114", f"expected a virtual device, got {describe(value)}", tree)


def checked_device(session: Session, text: str, tree: ast.AST) -> str:
    """The name of a virtual device, without the memory that all have; W111 for one that the module does not have."""
    why = why_no_device(text, session.module.infos) if session.module.name is not None else None
    if why is not None:
        raise session.fail("W111", f"the module has no virtual device {text!r}", tree, why)
    return text.removesuffix(":global") if text.count(":") == 2 else text
