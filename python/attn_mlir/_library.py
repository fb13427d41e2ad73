"""Finds our shared libraries: $ATTN_LIB_DIR, an install tree beside the package, or the build folder of a checkout."""

import ctypes
import os
import pathlib


def candidates():
    if "ATTN_LIB_DIR" in os.environ:
        yield pathlib.Path(os.environ["ATTN_LIB_DIR"])
        return
    here = pathlib.Path(__file__).resolve().parent
    yield here / "lib"
    yield here.parent.parent / "lib"
    yield here.parent.parent / "build" / "lib"


def load(name):
    """The library `name` ("AttnCompiler", "AttnRuntime"). Raises ImportError that names the folders looked in."""
    file = f"lib{name}.so"
    looked = []
    for folder in candidates():
        looked.append(str(folder))
        if (folder / file).exists():
            return ctypes.CDLL(str(folder / file), mode=ctypes.RTLD_LOCAL)
    raise ImportError(f"{file} not found in {', '.join(looked)}; build the project (./dev build) or set ATTN_LIB_DIR")
