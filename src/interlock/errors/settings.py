"""What is wrong with a setting or an option."""

from __future__ import annotations

from interlock.errors.base import UsageError, shown


class UnknownSetting(UsageError):
    setting: str
    origin: str = "argument"
    nearest: str | None = None

    def __str__(self) -> str:
        hint = f"did you mean {self.nearest!r}?" if self.nearest else "`interlock config` lists them all"
        return f"no setting is called {self.setting!r} (from {self.origin}); {hint}"


class InvalidSetting(UsageError):
    setting: str
    found: object
    expected: str
    origin: str = "argument"

    def __str__(self) -> str:
        return f"setting {self.setting!r} is {shown(self.found)} (from {self.origin}); expected {self.expected}"


class ContradictingSettings(UsageError):
    first: str
    first_value: object
    second: str
    second_value: object
    rule: str

    def __str__(self) -> str:
        return f"{self.first}={self.first_value} contradicts {self.second}={self.second_value}: {self.rule}"


class InvalidSchemaName(UsageError):
    found: object

    def __str__(self) -> str:
        return (
            f"{shown(self.found)} cannot name a schema; use a lower-case letter or underscore, then lower-case"
            " letters, digits and underscores, 40 at most, and not a name that starts with pg_"
        )


class PackageMissing(UsageError):
    """What was chosen needs a package that Interlock does not bring by itself."""

    package: str
    needed_by: str

    def __str__(self) -> str:
        return f"{self.needed_by} needs a package that is not installed; run: pip install {self.package}"


class InvalidOption(UsageError):
    option: str
    found: object
    expected: str

    def __str__(self) -> str:
        return f"{self.option}={shown(self.found)}; expected {self.expected}"
