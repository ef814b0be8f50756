"""The conversion of `mt-service import`, whose options mt.cli.import_model checks before torch is imported."""

import argparse
from functools import partial
from pathlib import Path

from mt.cli.command import stderr_console, tell
from mt.engine.backends.calibration import accepts
from mt.errors import ModelError
from mt.interop.catalogue import hub_name, installed_folder, models_folder
from mt.interop.importer import import_model, is_folder
from mt.interop.int8 import round_import
from mt.interop.origin import ImportOptions


def convert(options: argparse.Namespace) -> None:
    console = stderr_console()
    report = partial(tell, console)
    out = options.out or default_folder(options.source)
    how = ImportOptions(options.allow_pickle, options.as_marian)
    import_model(options.source, out, options.direction, how, report)
    report(f"{out}: imported")
    with console.status("comparing int8 with float32"):
        check = round_import(out, options.keep_float)
    if check is not None:
        selected = "int8" if accepts(check) else "float32"
        report(
            f"int8 diverges from float32 by {check.divergence:.5f} nats per token, by {check.worst_decile:.5f} in the "
            f"worst tenth of {check.sentences} sentences: on a CPU, --dtype auto selects {selected}"
        )


def default_folder(source: str) -> Path:
    """Return the model directory, in the folder of installed models, for a model of the hub.

    Raises: ModelError if `source` is a local folder.
    """
    if is_folder(source):
        raise ModelError(f"{source} is a folder; accepted: with a second argument, the model directory to write")
    return installed_folder(hub_name(source), models_folder())
