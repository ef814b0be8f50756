"""Hatch's hook: a wheel brings the compiled kernels along, for every instruction set that the compiler knows.

A checkout needs none of this: it compiles what its own processor runs when a model is first loaded.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KernelsHook(BuildHookInterface):
    """Compiles into mt/kernels/prebuilt. Where that is impossible the wheel is pure, and its user's compiler serves."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        folder = Path(self.root) / "mt" / "kernels" / "prebuilt"
        subprocess.run([sys.executable, Path(self.root) / "mt" / "kernels" / "build.py", folder], check=False)
        if any(folder.glob("*.so")):
            build_data["artifacts"].append("mt/kernels/prebuilt/*.so")
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
