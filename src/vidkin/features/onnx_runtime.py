"""Import ``onnxruntime`` with its telemetry disabled."""

from __future__ import annotations

import importlib
import os
from typing import Any

# ONNX Runtime reads this variable once, when it is imported. Otherwise, its official builds store a machine identifier
# in the home folder and send events about every session to Microsoft.
_TELEMETRY_VARIABLE = "ORT_DISABLE_TELEMETRY"


def load_onnxruntime() -> Any:
    """Import ``onnxruntime``; all of vidkin imports it through this function.

    An existing value of ``ORT_DISABLE_TELEMETRY`` is kept. If a program imports ``onnxruntime`` before vidkin does,
    the program's own telemetry settings apply.
    """
    os.environ.setdefault(_TELEMETRY_VARIABLE, "1")
    return importlib.import_module("onnxruntime")
