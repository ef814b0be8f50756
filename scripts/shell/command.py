"""How a script ends: well, with a message that says what to do, or by Ctrl-C; never with a traceback over a mistake."""

from collections.abc import Callable
from functools import wraps
from typing import TypeVarTuple

from rich.console import Console

from mt.errors import MTError

Ts = TypeVarTuple("Ts")


def command(main: Callable[[*Ts], int]) -> Callable[[*Ts], int]:
    """`main`, which returns an exit status, with what a user can put right told on stderr: 2; and Ctrl-C: 130."""

    @wraps(main)
    def told(*arguments: *Ts) -> int:
        console = Console(stderr=True)
        try:
            return main(*arguments)
        except MTError as error:
            console.print(f"error: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
            return 2
        except OSError as error:  # a full disk, a folder that may not be written to
            console.print(f"error: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
            return 2
        except KeyboardInterrupt:
            console.print("stopped", style="yellow")
            return 130

    return told
