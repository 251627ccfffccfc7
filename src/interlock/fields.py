"""Classes whose annotations are their fields, as those of a dataclass are, but made without generating code.

A dataclass compiles its methods in every process that imports it, a tenth of a millisecond or more for each class. The
errors and events are nearly two hundred classes that differ in their fields alone, so they share these methods.
"""

from __future__ import annotations

import inspect
from dataclasses import field, make_dataclass
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from dataclasses import Field


class _Asked:
    """What `dataclasses` reads of a class; made when somebody asks, because hardly anybody does."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type[WithFields]) -> Any:
        if owner is WithFields:  # no dataclass itself: a frozen one may have frozen parents alone
            raise AttributeError(self._name)
        return getattr(owner._as_dataclass(), self._name)  # noqa: SLF001  the other half of this one idea


class WithFields:
    """Takes its fields by keyword and shows them; `dataclasses.fields` and `dataclasses.replace` work on it."""

    _fields: ClassVar[dict[str, Any]] = {}
    """Each by its name, in the order of the source, with its default or None."""
    _necessary: ClassVar[frozenset[str]] = frozenset()
    _is_frozen: ClassVar[bool] = False
    _twin: ClassVar[type]

    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    else:
        __dataclass_fields__ = _Asked()
        __dataclass_params__ = _Asked()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        own = [name for name, kind in cls.__annotations__.items() if "ClassVar" not in str(kind)]
        cls._fields = cls._fields | {name: getattr(cls, name, None) for name in own}
        cls._necessary = frozenset(name for name in cls._fields if not hasattr(cls, name))

    def __init__(self, **values: Any) -> None:
        own = vars(self)
        own.update(self._fields)
        own.update(values)
        if len(own) != len(self._fields) or not self._necessary.issubset(values):
            raise TypeError(self._wrong(values))
        self.__post_init__()

    def __post_init__(self) -> None:
        """Mend what was passed; most take it as it is."""

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._fields)
        return f"{type(self).__qualname__}({shown})"

    @classmethod
    def _as_dataclass(cls) -> type:
        """A dataclass with the same fields."""
        if "_twin" not in vars(cls):
            fields = [(name, kind, cls._as_field(name)) for name, kind in cls._kinds().items()]
            cls._twin = make_dataclass(cls.__name__, fields, kw_only=True, frozen=cls._is_frozen, eq=False, repr=False)
        return cls._twin

    @classmethod
    def _kinds(cls) -> dict[str, Any]:
        """The annotation of each field."""
        found: dict[str, Any] = {}
        for base in reversed(cls.__mro__):
            found |= inspect.get_annotations(base)
        return {name: found[name] for name in cls._fields}

    @classmethod
    def _as_field(cls, name: str) -> Any:
        return field() if name in cls._necessary else field(default=cls._fields[name])

    def _wrong(self, values: dict[str, Any]) -> str:
        unknown, missing = values.keys() - self._fields.keys(), self._necessary - values.keys()
        problems = [f"unknown: {', '.join(sorted(unknown))}"] if unknown else []
        problems += [f"missing: {', '.join(sorted(missing))}"] if missing else []
        return f"{type(self).__qualname__}() got the wrong fields; {'; '.join(problems)}"
