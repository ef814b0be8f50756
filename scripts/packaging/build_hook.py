"""Hatch build hook: adds kernels to the wheel, compiled for every instruction set that the compiler supports.

A checkout does not need them: it compiles the kernels for its processor when a model is first loaded.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KernelsHook(BuildHookInterface):
    """Build of kernels into mt/kernels/prebuilt. If it fails, the wheel has none, and the user's machine compiles."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        folder = Path(self.root) / "mt" / "kernels" / "prebuilt"
        subprocess.run([sys.executable, Path(self.root) / "mt" / "kernels" / "build.py", folder], check=False)
        if any(folder.glob("*.so")):
            build_data["artifacts"].append("mt/kernels/prebuilt/*.so")
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
