"""Short pauses of the event loop: rare garbage collections, and frequent changes of the running thread."""

import gc
import sys

FULL_EVERY = 1000  # collections of the second generation; Python's default is 10
SWITCH_SECONDS = 0.001  # Python's default is 0.005


def shorten_pauses() -> None:
    """Leave the objects that exist now out of all collections, run full collections rarely, and switch threads often.

    A full collection took 150 milliseconds with the objects of all modules, and 100 milliseconds more with a thousand
    requests in progress; under load there was one each second. Reference cycles of requests are short-lived: the
    frequent collections of the first two generations find them.

    Each time the event loop has waited for a socket, it waits up to `SWITCH_SECONDS` for every thread that runs Python
    code. With four threads that parse glossaries, /livez took up to 180 milliseconds with the default.
    """
    gc.freeze()
    gc.set_threshold(*gc.get_threshold()[:2], FULL_EVERY)
    sys.setswitchinterval(SWITCH_SECONDS)
