"""Load ``onnxruntime`` with its reports to its vendor turned off."""

from __future__ import annotations

import importlib
import os
from typing import Any

# ONNX Runtime reads it once, when it is loaded. Its official builds otherwise keep an identifier of the machine below
# the home folder and send events about every session to Microsoft.
_SWITCH = "ORT_DISABLE_TELEMETRY"


def load_onnxruntime() -> Any:
    """Return the module ``onnxruntime``; everything in vidkin that needs it loads it here.

    A value that the environment has for ``ORT_DISABLE_TELEMETRY`` is kept. A program that imports ``onnxruntime``
    before vidkin does decides about its reports by itself.
    """
    os.environ.setdefault(_SWITCH, "1")
    return importlib.import_module("onnxruntime")
