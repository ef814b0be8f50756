"""Argument parser of all programs."""

import argparse
import re
from typing import NoReturn

from mt.errors import did_you_mean


class ArgumentParser(argparse.ArgumentParser):
    """Argument parser that suggests the nearest option for an unknown one."""

    def error(self, message: str) -> NoReturn:
        """Print the usage and `message`, with a suggestion for each unknown option, and exit with status 2."""
        if message.startswith("unrecognized arguments: "):
            names = self._option_names()
            message = re.sub(r"(?<= )--[\w-]+", lambda option: option[0] + did_you_mean(option[0], names), message)
        super().error(message)

    def _option_names(self) -> set[str]:
        """Return the names of the options of this parser and of its actions."""
        names = set(self._option_string_actions)
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                names.update(*(parser._option_string_actions for parser in action.choices.values()))
        return names
