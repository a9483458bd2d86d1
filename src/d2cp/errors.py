"""Faults a user can mend: each message says what was found, what was expected and what to do."""

from __future__ import annotations


class D2CPError(Exception):
    """Base of every error that the command line shows without a traceback."""

    exit_code = 2

    def __init__(self, found: str, *, expected: str = "", remedy: str = "") -> None:
        self.found, self.expected, self.remedy = found, expected, remedy
        lines = [found]
        if expected:
            lines.append(f"  expected: {expected}")
        if remedy:
            lines.append(f"  to do:    {remedy}")
        super().__init__("\n".join(lines))


class ConfigError(D2CPError):
    """An unknown key, a value of the wrong type or out of range, an unknown preset."""


class DataError(D2CPError):
    """A data set that is absent, not recognised, or broken."""

    exit_code = 3


class BackboneError(D2CPError):
    """A backbone that cannot be found, loaded, or used at this image size."""

    exit_code = 4


class RunError(D2CPError):
    """A run directory that is locked, damaged, or made with other settings."""

    exit_code = 5


class StoppedError(D2CPError):
    """A person pressed Ctrl-C."""

    exit_code = 130


class TrainingError(D2CPError):
    """Training that cannot go on: a loss that is not finite, an empty training set."""

    exit_code = 6
