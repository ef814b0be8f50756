"""Installation of Hugging Face models before the service starts, if the setting `model` names them.

`mt-service import` runs in a process of its own, because it needs torch and enough memory for the whole model. The
service needs neither.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType

import structlog

from mt.errors import MTError, problems
from mt.interop.catalogue import HUB, hub_name, installed_folder, is_installed, model_path, models_folder
from service.settings import Settings, SettingsError


def install_models(settings: Settings) -> Settings:
    """Install the models that the setting `model` names as `hub:NAME`, and replace the names by model directories.

    The name `starter` is replaced by the directory of the starter model. Return the changed settings. The folder is
    the setting `models`, or else the user's data folder. A model that is already installed stays as it is, even if the
    hub has another version. Raises: SettingsError if a name is wrong, or a model cannot be installed.
    """
    folder = settings.models or models_folder()
    wanted = [str(path) for path in settings.model]
    paths: dict[str, Path] = {}
    wrong = []
    for text in wanted:
        try:
            paths[text] = installed_folder(hub_name(text), folder) if text.startswith(HUB) else model_path(text)
        except MTError as error:
            wrong.append(str(error))
    if wrong:
        raise SettingsError(problems("the setting model cannot be used", wrong))
    for text, path in paths.items():
        if text.startswith(HUB) and not is_installed(path):
            _import(hub_name(text), path)
    return settings.model_copy(update={"model": tuple(map(paths.__getitem__, wanted))})


def _import(name: str, directory: Path) -> None:
    """Install a model by `mt-service import`. Raises: SettingsError if this program fails; it prints the reason."""
    structlog.get_logger().info("installing a model", model=name, directory=str(directory))
    with subprocess.Popen([sys.executable, "-m", "mt", "import", name, str(directory)]) as program:

        def stop(number: int, frame: FrameType | None) -> None:
            program.terminate()
            os._exit(0)  # no request has been accepted

        signal.signal(signal.SIGTERM, stop)  # until `serve` handles signals
    if program.returncode:
        raise SettingsError(f"the model {HUB}{name} could not be installed; the reason is printed above")
