"""C: what is compiled is part of the module, as data."""

from __future__ import annotations

import hashlib
import os
from typing import Any

from tests.mutation.faults import fault, returning, then

C = "tests/runtime/test_artifacts_in_modules.py"


@fault(
    "C1",
    "weft.runtime.artifact:Artifact.to_text_data",
    f"{C}::test_the_text_of_a_module_shows_kind_target_symbols_size_and_hash",
)
def the_text_shows_no_hash(right: Any) -> Any:
    return then(lambda data: {key: value for key, value in data.items() if key != "sha256"})(right)


@fault("C2", "weft.runtime.artifact:Artifact.__post_init__", f"{C}::test_nothing_that_loads_is_imported_before_load")
def an_artifact_can_be_called(right: Any) -> Any:
    def wrong(self: Any) -> None:
        cls: Any = type(self)
        cls.__call__ = lambda self, *args: self.load()(*args)
        right(self)

    return wrong


@fault("C3", "weft.runtime.artifact:Artifact._from_header", f"{C}::test_every_kind_survives_file_bytes_json_and_text")
def the_loader_is_not_read(right: Any) -> Any:
    return classmethod(lambda cls, header, content: right.__func__(cls, {**header, "loader": ""}, content))


fault("C4", "weft.runtime.artifact:ArtifactSet.link_check", f"{C}::test_there_are_no_other_edges")(
    returning(None, "what_nothing_provides_is_linked")
)


fault(
    "C5",
    "weft.runtime.artifact:Artifact._check_serialisable",
    f"{C}::test_what_is_only_in_memory_is_flagged_and_refuses_to_be_saved",
)(returning(None, "what_is_only_in_memory_is_saved_empty"))


@fault("C6", "weft.ir.module:IRModule.with_functions", f"{C}::test_every_pass_keeps_artifacts")
def new_functions_lose_the_artifacts(right: Any) -> Any:
    return then(lambda module: module.without_attr("artifacts") if "artifacts" in module.attrs else module)(right)


@fault(
    "C7",
    "weft.runtime.artifact:ArtifactSet.content_hash",
    f"{C}::test_modules_compare_by_the_contents_of_their_artifacts",
)
def artifacts_of_one_name_are_equal(right: Any) -> Any:
    return property(lambda self: hashlib.sha256(repr(self.names).encode()).hexdigest())


@fault("C8", "weft.runtime.artifact:ArtifactSet.__init__", f"{C}::test_an_artifact_has_the_fields_of_the_schema")
def the_later_of_two_artifacts_wins(right: Any) -> Any:
    def wrong(self: Any, artifacts: Any = ()) -> None:
        right(self, {item.name: item for item in artifacts}.values())

    return wrong


@fault(
    "C9",
    "weft.runtime.artifact:Artifact.content_hash",
    "tests/runtime/test_artifact.py::test_the_hash_is_the_same_in_every_process",
)
def the_hash_depends_on_the_process(right: Any) -> Any:
    return property(lambda self: hashlib.sha256(f"{os.getpid()} {right.fget(self)}".encode()).hexdigest())


@fault(
    "C10",
    "weft.runtime.artifact:ArtifactSet.__init__",
    f"{C}::test_the_order_of_several_code_generators_is_that_of_names",
)
def artifacts_stay_in_the_order_they_come_in(right: Any) -> Any:
    def wrong(self: Any, artifacts: Any = ()) -> None:
        listed = list(artifacts)
        right(self, listed)
        self._by_name = {item.name: item for item in listed}

    return wrong


@fault("C11", "weft.codegen.package:_split", f"{C}::test_constants_are_artifacts_and_kept_once")
def constants_stay_in_the_text(right: Any) -> Any:
    def wrong(module: Any) -> Any:
        from weft.runtime.artifact import ArtifactSet

        return module.attrs.get("artifacts", ArtifactSet()), module.script()

    return wrong


fault("C12", "weft.transform.analysis.purity:is_pure", f"{C}::test_effects_are_unknown_unless_declared")(
    returning(True, "every_call_is_pure")
)


fault("C13", "weft.ir.structure.malformed:malformed", "tests/systems/test_raw_exceptions.py")(
    returning(None, "odd_nodes_pass")
)


fault("C14", "weft.script.reader.module.unit:_check_version", f"{C}::test_texts_of_before_versions_are_read")(
    returning(None, "a_later_version_is_read")
)


@fault("C15", "weft.codegen.backends.generators:provenance", f"{C}::test_an_artifact_says_what_it_was_made_from_and_by")
def functions_have_the_hashes_of_their_names(right: Any) -> Any:
    def wrong(module: Any) -> Any:
        return {**right(module), "functions": {name: f"{hash(name):016x}" for name in module}}

    return wrong
