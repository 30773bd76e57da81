"""The data: nodes, types, symbolic dimensions, modules, operators, verifier. Imports nothing else of weft."""

# The face of the package: what is imported here is for others.
# pyright: reportUnusedImport=false

import weft.ir.op.sugar  # installs the operators on expressions
from weft.ir.dim import Dim, DimExpr
from weft.ir.graph import *
from weft.ir.module import BaseFunc, DummyGlobalInfo, IRModule
from weft.ir.node import EMPTY, FrozenMap, Node, fields_of, replace
from weft.ir.structure.merge import MergeResult, extract, merge
from weft.ir.structure.structural import assert_structural_equal, first_mismatch, structural_equal, structural_hash
from weft.ir.structure.visit import children, post_order, rewrite, substitute, substitute_symbols, walk
from weft.ir.tensor import *
from weft.ir.types import *
from weft.ir.verify import Finding, assert_well_formed, verify

if __name__ != "weft.ir":  # the checkout root on sys.path would load a second copy
    raise ImportError("import weft.ir, not ir")
