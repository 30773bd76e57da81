"""What a call of `weft.compile` asks for, put together from its arguments and from what the module carries.

    target    ::= the argument | the attribute `target` of the module | that of `with target:` | llvm, this machine
    executor  ::= the argument | the executor of a configuration | native
    part      ::= label -> leaf target; the part `host`, else the first one, drives the others

Everything that is asked for is honoured by some code generator or refused here, with the label and the kind named.

Errors: TargetError W734 a module that carries another target than the argument says, W735 executors that contradict,
W736 a part that nothing can make code for, W738 a field of a configuration that this build cannot honour.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from weft.codegen.backends.base import Plan, back_end_of
from weft.codegen.backends.llvm.machine.host_target import HostTarget, host_target
from weft.errors import TargetError
from weft.ir.attrs import CARRIED
from weft.ir.module import IRModule
from weft.target import Config, Target
from weft.target.builtin import EXECUTORS
from weft.transform.autoschedule.knobs import Knobs
from weft.transform.target.labels import driving_label, leaf_parts, refuse_labels

__all__ = ["CARRIED", "Plan", "make_plan"]


def make_plan(module: IRModule, target: object = None, executor: str | None = None, opt: int | Knobs = 2) -> Plan:
    """What the arguments and the module ask for; TargetError where they contradict or cannot be honoured."""
    if isinstance(opt, Knobs):
        return replace(make_plan(module, target, executor, opt.level), knobs=replace(opt, level=Knobs.level))
    wanted = _wanted(module, target)
    if isinstance(wanted, HostTarget):
        return _for_host(module, wanted, executor, opt)
    parts = dict(leaf_parts(wanted))
    machines = {label: found for label, part in parts.items() if (found := back_end_of(part).processor(part, opt))}
    driver = driving_label(parts)
    described = {label: machine.described() for label, machine in machines.items()}
    chosen = _executor(wanted, executor, parts[driver])
    plan = Plan(wanted, parts, driver, machines, _described(wanted, described), chosen, opt)
    _check_fields(plan)
    if wanted.is_leaf:
        refuse_labels(module, wanted)
    return plan


def _wanted(module: IRModule, target: object) -> Target | HostTarget:
    carried = _carried(module)
    if target is None and carried is None:
        return Target.current() or HostTarget()
    if target is None:
        assert carried is not None
        return carried
    if isinstance(target, HostTarget):
        return target
    wanted = _read(target)
    if carried is not None and carried != wanted:
        raise TargetError(
            f"the module carries the target {str(carried)!r}, the argument says {str(wanted)!r}",
            code="W734",
            span=module.span,
            hint="leave the argument out, or change the module: module.without_attr('target')",
        )
    return wanted


def _read(target: object) -> Target:
    if isinstance(target, Config):
        return target.to_target()
    if isinstance(target, (str, Mapping, Target)):
        return Target(target)
    raise TargetError(f"a target is text, a dict or a weft.Target, got {type(target).__name__}", code="W730")


def _carried(module: IRModule) -> Target | None:
    found = module.attrs.get(CARRIED)
    return None if found is None else Target(found)


def _for_host(module: IRModule, machine: HostTarget, executor: str | None, opt: int) -> Plan:
    host_target(None, opt)  # the level
    if not machine.cpu:
        machine = replace(machine, opt=opt)
    target = _leaf()
    refuse_labels(module, target)
    return Plan(target, {"": target}, "", {"": machine}, machine.described(), _chosen(executor), opt)


@functools.cache
def _leaf() -> Target:
    """Machine code, of whatever machine this is."""
    return Target("llvm")


def _described(target: Target, machines: Mapping[str, Target]) -> Target:
    """The target with the parts for this machine at the level of its processor."""
    if target.is_leaf:
        return machines.get("", target)
    data = target.to_dict()

    def fill(whole: Target, inside: dict[str, Any]) -> None:
        for label, part in whole.parts.items():
            if part.parts:
                fill(part, inside["parts"][label])
            elif label in machines:
                inside["parts"][label] = machines[label].to_dict()

    fill(target, data)
    return Target(data)


def _executor(target: Target, argument: str | None, driving: Target) -> str:
    stated = None if target.is_leaf else dict(target.options.get("executor", {})).get("kind")
    if stated is not None and argument is not None and stated != argument:
        raise TargetError(
            f"the configuration says executor {stated!r}, the argument says {argument!r}",
            code="W735",
            hint="leave one of them out",
        )
    chosen = argument if stated is None else str(stated)
    return back_end_of(driving).executors[0] if chosen is None else _chosen(chosen)


def _chosen(executor: str | None) -> str:
    if executor is None:
        return "native"
    if executor not in EXECUTORS:
        raise TargetError(f"there is no executor {executor!r}", code="W735", hint=f"one of {', '.join(EXECUTORS)}")
    return executor


def _check_fields(plan: Plan) -> None:
    """Refuse what a configuration says that the driving part cannot do."""
    options = plan.configuration
    runtime, driver = plan.runtime, plan.parts[plan.driver]
    if plan.runs_here and runtime not in (None, "host"):
        raise TargetError(
            f"runtime {runtime!r} cannot be had with {plan.where(plan.driver)}, which runs in this process",
            code="W738",
            hint="give the driving part a processor: c -mcpu=...",
        )
    if runtime == "rtos":
        raise TargetError(
            "runtime 'rtos' changes nothing of what is made", code="W738", hint="bare: no operating system is called"
        )
    if runtime == "host" and driver.triple is not None and driver.triple.os in ("", "none", "unknown"):
        raise TargetError(
            f"runtime 'host' is an operating system, and {plan.where(plan.driver)} has none",
            code="W738",
            hint="bare, or a triple that names the system",
        )
    if plan.package == "shared":
        _check_shared(plan)
    for label, part in plan.parts.items():
        threads = part.options.get("threads")
        if threads and int(threads) > 1 and label not in plan.machines:
            raise TargetError(
                f"loops of object code for another machine run in order, and {plan.where(label)} asks for {threads}"
                " threads",
                code="W738",
                hint="leave -threads out",
            )
        planner = part.options.get("planner")
        if planner and label == plan.driver:
            from weft.transform.memory.planners import find_planner  # few targets ask for one

            find_planner(planner)
        elif planner:
            raise TargetError(
                f"memory is planned by {plan.where(plan.driver)}, which drives, not by {plan.where(label)}",
                code="W738",
                hint=f"-planner={planner} for the part that drives",
            )
    if "memory" in options and not plan.parts[plan.driver].kind.plans_memory:
        raise TargetError(
            f"memory pools are laid out by parts that plan memory themselves, and {plan.where(plan.driver)} drives",
            code="W738",
            hint="leave `memory` out, or let a part of kind c drive",
        )


def _check_shared(plan: Plan) -> None:
    """Refuse a shared object that the C compiler of this machine cannot make."""
    foreign = [label for label, part in plan.parts.items() if label not in plan.machines and part.cpu is not None]
    if foreign or plan.runtime == "bare":
        why = "a runtime 'bare' loads none" if not foreign else f"{plan.where(foreign[0])} is another machine"
        raise TargetError(
            f"the package 'shared' is made by the C compiler of this machine, and {why}",
            code="W738",
            hint="package=tree: its Makefile makes a library where the compiler for that machine is",
        )
