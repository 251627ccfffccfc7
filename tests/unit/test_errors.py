from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Sequence
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any, get_type_hints

import pytest

from interlock import errors
from interlock.errors import InterlockError

if TYPE_CHECKING:
    from collections.abc import Iterator

BRANCHES = {"InterlockError", "UsageError", "SchemaError", "EmbeddedError"}
TOLD_BY_THE_RAISER = {"problem", "hint", "rule", "expected", "log"}
"""Fields in which whoever raises the error says what is wrong and what helps."""
ENDS_THE_WORK = {"JunctionFailed", "CancelledByRequest", "ComponentEnded", "WorkFailed", "WorkCancelled"}
"""Errors that report an end: nothing is to be done about the call itself."""
TOO_LONG_TO_SHOW = {"traceback"}
EXIT_CODES = {0, 1, 2, 3, 4, 5, 6}


def kinds(root: type[InterlockError] = InterlockError) -> Iterator[type[InterlockError]]:
    """Every error that the module defines, in the order of its source."""
    yield root
    for kind in vars(errors).values():
        if isinstance(kind, type) and root in kind.__bases__:
            yield from kinds(kind)


def leaves() -> list[type[InterlockError]]:
    return [kind for kind in kinds() if kind.__name__ not in BRANCHES]


def sample(kind: type[InterlockError]) -> InterlockError:
    hints = get_type_hints(kind)
    return kind(**{field.name: _value(field.name, hints[field.name]) for field in fields(kind)})


def _value(name: str, kind: Any) -> Any:
    if kind in (int, int | None):
        return 4711
    if kind is float:
        return 2.5
    return [f"<{name} 1>", f"<{name} 2>"] if kind == Sequence[str] else f"<{name}>"


def drawn(text: str) -> list[tuple[int, str]]:
    """The tree as the docstring draws it: each name with its depth."""
    lines = re.finditer(r"^((?:[│ ]   )*(?:[├└]── )?)(\w+)(?:\s{2,}.*|)$", text, re.MULTILINE)
    return [(len(line[1]) // 4, line[2]) for line in lines]


def real(root: type[InterlockError] = InterlockError, depth: int = 0) -> Iterator[tuple[int, str]]:
    yield depth, root.__name__
    for kind in vars(errors).values():
        if isinstance(kind, type) and root in kind.__bases__:
            yield from real(kind, depth + 1)


def test_the_tree_in_the_docstring_is_the_tree_of_the_classes():
    assert sorted(drawn(str(errors.__doc__))) == sorted(real())
    assert _parents(drawn(str(errors.__doc__))) == _parents(list(real()))


def _parents(tree: list[tuple[int, str]]) -> dict[str, str]:
    path: list[str] = []
    found = {}
    for depth, name in tree:
        path[depth:] = [name]
        found[name] = path[depth - 1] if depth else ""
    return found


def test_control_a_missing_a_moved_and_an_invented_error_are_seen():
    tree = str(errors.__doc__)
    changes = (
        tree.replace("│   ├── InvalidSetting\n", ""),
        tree.replace("│   ├── SchemaAbsent", "├── SchemaAbsent"),
        tree.replace("├── DatabaseUnavailable", "├── DatabaseUnavailable\n├── Invented"),
    )
    for changed in changes:
        assert changed != tree
        assert _parents(drawn(changed)) != _parents(list(real()))


def test_every_error_of_the_module_is_in_the_tree():
    defined = {kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, BaseException)}
    assert defined == set(kinds())


@pytest.mark.parametrize("kind", leaves(), ids=lambda kind: kind.__name__)
def test_an_error_survives_pickle_and_copy_with_its_data_and_text(kind):
    error = sample(kind)
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(twin) is kind
        assert vars(twin) == vars(error)
        assert str(twin) == str(error)


@pytest.mark.parametrize("kind", leaves(), ids=lambda kind: kind.__name__)
def test_a_message_shows_what_was_found(kind):
    error = sample(kind)
    shown = str(error).replace(",", "")
    for field in fields(kind):
        value = "" if field.name in TOO_LONG_TO_SHOW else getattr(error, field.name)
        for part in value if isinstance(value, list) else [value]:
            assert str(part) in shown, field.name


@pytest.mark.parametrize("kind", leaves(), ids=lambda kind: kind.__name__)
def test_a_message_says_what_to_do(kind):
    told = {field.name for field in fields(kind)} & TOLD_BY_THE_RAISER
    assert told or kind.__name__ in ENDS_THE_WORK or "; " in str(sample(kind))


@pytest.mark.parametrize("kind", leaves(), ids=lambda kind: kind.__name__)
def test_a_message_is_whole_when_only_the_necessary_fields_are_given(kind):
    necessary = {field.name: getattr(sample(kind), field.name) for field in fields(kind) if _is_necessary(field)}
    text = str(kind(**necessary))
    assert text
    assert "None" not in text


def _is_necessary(field: Any) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def test_every_error_has_an_exit_code_of_the_command_line():
    assert {kind.exit_code for kind in kinds()} <= EXIT_CODES
    assert (errors.UsageError.exit_code, errors.NotFound.exit_code, errors.SchemaError.exit_code) == (2, 3, 4)


def test_errors_are_caught_by_the_standard_types_that_callers_expect():
    assert issubclass(errors.UsageError, ValueError)
    assert issubclass(errors.NotFound, LookupError)


def test_two_equal_errors_are_still_two_errors():
    first, second = sample(errors.LeaseLost), sample(errors.LeaseLost)
    assert first != second
    assert len({first, second}) == 2


def test_a_long_value_is_shown_by_its_beginning():
    error = errors.InvalidOption(option="external_id", found="z" * 5_000, expected="a short one")
    assert len(str(error)) < 400
    assert "(5,002 characters)" in str(error)
