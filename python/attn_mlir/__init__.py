"""attn-mlir from Python: compile a variant, plan a batch, run it.

    bundle = attn_mlir.compile(ir_text, target="host")
    executable = attn_mlir.Executable(bundle)            # CPU: numpy arrays; CUDA: torch or DLPack tensors
    plan = executable.plan(qo_indptr=..., kv_indptr=..., kv_last=...)
    plan.run(q=q, k=k, v=v, o=o, lse=lse, params={"cap": 50.0})

No torch import happens unless torch tensors are passed.
"""

from ._compiler import CompileError, compile, compile_file

__all__ = ["CompileError", "compile", "compile_file"]

try:
    from . import _runtime
except ImportError as error:  # pragma: no cover - a source tree without a build
    _runtime_error = error
else:
    __all__ += list(getattr(_runtime, "__all__", []))
    globals().update({name: getattr(_runtime, name) for name in getattr(_runtime, "__all__", [])})
