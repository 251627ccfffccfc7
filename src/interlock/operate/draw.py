"""Who waits for whom among manifests, drawn as text, for mermaid and for graphviz."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from interlock.model.reading import ManifestPlan

Children = dict[str | None, list["ManifestPlan"]]


def as_text(plans: Sequence[ManifestPlan]) -> str:
    """A tree per manifest that waits for nobody."""
    children = _children(plans)
    return "\n".join(line for root in children.get(None, []) for line in _tree(root, children, "", ""))


def as_mermaid(plans: Sequence[ManifestPlan]) -> str:
    names = {plan.external_id: f"m{number}" for number, plan in enumerate(plans)}
    lines = ["graph LR"]
    lines += [f'    {names[plan.external_id]}["{_escaped_for_mermaid(_label(plan))}"]' for plan in plans]
    lines += [
        f"    {names[plan.parent]} {'-.->' if plan.schedule_kind == 'dormant' else '-->'} {names[plan.external_id]}"
        for plan in plans
        if plan.parent in names
    ]
    return "\n".join(lines)


def as_dot(plans: Sequence[ManifestPlan]) -> str:
    lines = ["digraph manifests {", "    rankdir=LR;", "    node [shape=box];"]
    lines += [f"    {_quoted(plan.external_id)} [label={_quoted(_label(plan))}];" for plan in plans]
    lines += [
        f"    {_quoted(str(plan.parent))} -> {_quoted(plan.external_id)}"
        f"{' [style=dashed]' if plan.schedule_kind == 'dormant' else ''};"
        for plan in plans
        if plan.parent is not None
    ]
    return "\n".join([*lines, "}"])


FORMATS: Mapping[str, Callable[[Sequence[ManifestPlan]], str]] = {
    "text": as_text,
    "mermaid": as_mermaid,
    "dot": as_dot,
}


def _children(plans: Sequence[ManifestPlan]) -> Children:
    """By parent; one whose parent is not shown stands at the root."""
    shown = {plan.external_id for plan in plans}
    found: Children = {}
    for plan in plans:
        found.setdefault(plan.parent if plan.parent in shown else None, []).append(plan)
    return found


def _tree(plan: ManifestPlan, children: Children, lead: str, below: str) -> Iterator[str]:
    yield lead + _label(plan)
    dependents = children.get(plan.external_id, [])
    for number, dependent in enumerate(dependents, 1):
        last = number == len(dependents)
        branch, rest = ("└── ", "    ") if last else ("├── ", "│   ")
        yield from _tree(dependent, children, below + branch, below + rest)


def _label(plan: ManifestPlan) -> str:
    notes = [
        note for note, holds in (("dormant", plan.schedule_kind == "dormant"), ("disabled", not plan.enabled)) if holds
    ]
    return f"{plan.external_id} ({', '.join(notes)})" if notes else plan.external_id


def _escaped_for_mermaid(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
