"""The compiler's C API (include/attn-c/Compiler.h) by ctypes."""

import ctypes
import functools
import pathlib

from . import _library

API_VERSION = 2


class CompileError(Exception):
    """What the parser, the verifier, a pass or ptxas said."""


class _Options(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint32),
        ("target", ctypes.c_char_p),
        ("emit", ctypes.c_char_p),
        ("kernel", ctypes.c_char_p),
        ("ptxas", ctypes.c_char_p),
        ("cache_dir", ctypes.c_char_p),
        ("tuned", ctypes.c_char_p),
        ("isolate", ctypes.c_uint32),
    ]


@functools.lru_cache(maxsize=None)
def _lib():
    lib = _library.load("AttnCompiler")
    lib.attnCompilerApiVersion.restype = ctypes.c_uint32
    if lib.attnCompilerApiVersion() != API_VERSION:
        raise ImportError(f"libAttnCompiler.so has API version {lib.attnCompilerApiVersion()}, expected {API_VERSION}")
    lib.attnCompilerLastError.restype = ctypes.c_char_p
    lib.attnCompile.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.POINTER(_Options), ctypes.POINTER(ctypes.c_void_p)]
    for name, result in (("Data", ctypes.c_void_p), ("Size", ctypes.c_size_t), ("FromCache", ctypes.c_int),
                         ("Times", ctypes.c_char_p), ("Destroy", None)):
        function = getattr(lib, "attnCompileResult" + name)
        function.argtypes, function.restype = [ctypes.c_void_p], result
    return lib


def compile(ir, target="host", emit="bundle", kernel=None, ptxas=None, cache_dir=None, tuned=None, isolate=0):
    """Compiles IR text (or bytecode) that holds one attn.attention op.

    target: "host", "sm_80", "sm_86", "sm_89", "sm_90a" or "sm_100a". emit: "bundle" (bytes, the default), "tile", "llvm", "ptx"
    (str), "cubin" or "obj" (bytes). tuned: None (the built-in table of measured configs), "off" or a file of attn-tune. isolate:
    seconds that code generation may take in a child process, whose death is then an error (0: in this process). Raises CompileError
    with the compiler's text.
    """
    lib = _lib()
    data = ir.encode() if isinstance(ir, str) else bytes(ir)
    text = lambda value: None if value is None else str(value).encode()
    options = _Options(ctypes.sizeof(_Options), text(target), text(emit), text(kernel), text(ptxas), text(cache_dir), text(tuned), int(isolate))
    result = ctypes.c_void_p()
    if lib.attnCompile(data, len(data), ctypes.byref(options), ctypes.byref(result)) != 0:
        raise CompileError(lib.attnCompilerLastError().decode(errors="replace"))
    try:
        output = ctypes.string_at(lib.attnCompileResultData(result), lib.attnCompileResultSize(result))
    finally:
        lib.attnCompileResultDestroy(result)
    return output.decode() if emit in ("tile", "llvm", "ptx") else output


def compile_file(path, **options):
    """`compile` of a file's contents."""
    return compile(pathlib.Path(path).read_bytes(), **options)
