"""ctypes over include/attn-c/Runtime.h: bundles, executables, plans.

    executable = Executable(bundle_bytes_or_path)                  # device="cpu"; "cuda" or "cuda:1" for a GPU
    plan = executable.plan(qo_indptr=..., kv_indptr=..., kv_last=..., pages=...)
    plan.run(q=q, k=k, v=v, o=o, lse=lse, params={"cap": 50.0})

Tensors are numpy arrays on the CPU; on CUDA anything with data_ptr() (torch),
__cuda_array_interface__ or __dlpack__. Index arrays of a plan are host arrays (numpy, lists,
CPU tensors), except the page indices, which live where K and V live. Nothing here
imports torch; bf16 and fp8 in numpy are passed as Tensor(array, "bf16").
"""

import ctypes as C
import json

import numpy as np

from . import _library

__all__ = ["Bundle", "Device", "Executable", "Plan", "Tensor", "RuntimeFailure", "cuda_devices"]

_lib = _library.load("AttnRuntime")
_p, _i32, _i64, _u32 = C.c_void_p, C.c_int32, C.c_int64, C.c_uint32

_ELEMENTS = {"f32": 0, "bf16": 1, "f16": 2, "e4m3": 3, "e5m2": 4, "i8": 5, "i32": 6, "i64": 7}
_NAMES = {
    "float32": "f32", "float16": "f16", "bfloat16": "bf16", "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2",
    "int8": "i8", "uint8": "i8", "bool": "i8", "int32": "i32", "int64": "i64",
}
_POLICIES = {"auto": 0, "none": 1, "chunk": 2, "batch-invariant": 3}


class RuntimeFailure(RuntimeError):
    """A call of the runtime failed; the text names the argument, the rule and the remedy."""


class _Maxima(C.Structure):
    _fields_ = [("struct_size", _u32), ("levels", _i32), ("requests", _i64), ("tokens", _i64), ("kv_len", _i64)]


class _Options(C.Structure):
    _fields_ = [("struct_size", _u32), ("policy", _i32), ("chunk", _i64), ("ctas", _i32), ("units", _i32),
                ("causal", _i32), ("fixed_grid", _i32), ("maxima", _Maxima)]


class _Indices(C.Structure):
    _fields_ = [("data", _p), ("size", _i64), ("bits", _i32), ("reserved", _i32)]


class _Level(C.Structure):
    _fields_ = [("kv_indptr", _Indices), ("kv_last", _Indices), ("row_indptr", _Indices), ("pages", _p)]


class _PlanParam(C.Structure):
    _fields_ = [("f32", C.c_double), ("index", _i64), ("host", _p), ("host_size", _i64)]


class _Batch(C.Structure):
    _fields_ = [("struct_size", _u32), ("num_levels", _i32), ("num_params", _i32), ("reserved", _i32),
                ("qo_indptr", _Indices), ("levels", C.POINTER(_Level)), ("params", C.POINTER(_PlanParam)),
                ("kv_total", _Indices)]


class _Tensor(C.Structure):
    _fields_ = [("data", _p), ("element", _i32), ("rank", _i32), ("sizes", _i64 * 8), ("strides", _i64 * 8)]


class _Param(C.Structure):
    _fields_ = [("f32", C.c_float), ("reserved", _i32), ("index", _i64), ("buffer", _Tensor)]


class _Operands(C.Structure):
    _fields_ = [("struct_size", _u32), ("num_params", _i32), ("has_scale", _i32), ("scale", C.c_float),
                ("q", _Tensor), ("k", _Tensor), ("v", _Tensor), ("o", _Tensor), ("lse", _Tensor),
                ("params", C.POINTER(_Param))]


def _declare(name, *arguments):
    function = getattr(_lib, name)
    function.argtypes = arguments
    function.restype = C.c_int
    return function


_lib.attnrtLastError.restype = C.c_char_p
_lib.attnrtBundleManifest.argtypes, _lib.attnrtBundleManifest.restype = [_p], C.c_char_p
_lib.attnrtDeviceName.argtypes, _lib.attnrtDeviceName.restype = [_p], C.c_char_p
_lib.attnrtDeviceUnits.argtypes = [_p]
_lib.attnrtFreeString.argtypes, _lib.attnrtFreeString.restype = [_p], None
for _destroy in ("Bundle", "Device", "Executable", "Plan"):
    _function = getattr(_lib, f"attnrt{_destroy}Destroy")
    _function.argtypes, _function.restype = [_p], None
_open = _declare("attnrtBundleOpen", C.c_char_p, C.POINTER(_p))
_from_memory = _declare("attnrtBundleFromMemory", C.c_char_p, C.c_size_t, C.POINTER(_p))
_device_open = _declare("attnrtDeviceOpen", C.c_int, _i32, C.POINTER(_p))
_synchronize = _declare("attnrtStreamSynchronize", _p, _p)
_load = _declare("attnrtExecutableLoad", _p, _p, C.POINTER(_p))
_plan_create = _declare("attnrtPlanCreate", _p, C.POINTER(_Options), C.POINTER(_p))
_workspace_size = _declare("attnrtWorkspaceSize", _p, C.POINTER(_Maxima), C.POINTER(_i64))
_set_workspace = _declare("attnrtPlanSetWorkspace", _p, _p, _i64)
_plan = _declare("attnrtPlan", _p, C.POINTER(_Batch), _p)
_run = _declare("attnrtRun", _p, C.POINTER(_Operands), _p)
_describe = _declare("attnrtPlanDescribe", _p, C.POINTER(_p))
_svg = _declare("attnrtPlanSvg", _p, C.POINTER(_p))


def _check(code):
    if code:
        raise RuntimeFailure(_lib.attnrtLastError().decode())


def _stream(stream):
    """A stream: None, an address, or an object of torch (cuda_stream)."""
    if stream is None or isinstance(stream, int):
        return stream
    return stream.cuda_stream


class Tensor:
    """An array whose element type its own dtype cannot say: Tensor(uint16_array, "bf16")."""

    def __init__(self, array, element):
        if element not in _ELEMENTS:
            raise ValueError(f"unknown element type {element!r}; expected one of {', '.join(_ELEMENTS)}")
        self.array, self.element = array, element


class _DLTensor(C.Structure):
    _fields_ = [("data", _p), ("device_type", _i32), ("device_id", _i32), ("ndim", _i32), ("code", C.c_uint8),
                ("bits", C.c_uint8), ("lanes", C.c_uint16), ("shape", C.POINTER(_i64)), ("strides", C.POINTER(_i64)),
                ("byte_offset", C.c_uint64)]


# (type code, bits) of DLPack.
_DLPACK = {(2, 32): "f32", (2, 16): "f16", (4, 16): "bf16", (0, 8): "i8", (1, 8): "i8", (6, 8): "i8", (0, 32): "i32",
           (0, 64): "i64", (10, 8): "e4m3", (12, 8): "e5m2"}
C.pythonapi.PyCapsule_GetPointer.restype = _p
C.pythonapi.PyCapsule_GetPointer.argtypes = [C.py_object, C.c_char_p]


def _from_dlpack(tensor, name):
    """(address, element type or None, its name, sizes, strides). The producer keeps the memory alive as long as
    `tensor` lives; the capsule is not consumed."""
    capsule = tensor.__dlpack__()
    described = _DLTensor.from_address(C.pythonapi.PyCapsule_GetPointer(capsule, b"dltensor"))
    if described.lanes != 1:
        raise TypeError(f"operand '{name}': vector elements are not supported; view it as scalars")
    sizes = [described.shape[i] for i in range(described.ndim)]
    if described.strides:
        strides = [described.strides[i] for i in range(described.ndim)]
    else:
        strides = _contiguous(sizes)
    element = _DLPACK.get((described.code, described.bits))
    return (described.data or 0) + described.byte_offset, element, f"(code {described.code}, {described.bits} bits)", sizes, strides


def _contiguous(sizes):
    """Strides in elements of a row-major tensor."""
    strides, step = [], 1
    for size in reversed(sizes):
        strides.insert(0, step)
        step *= size
    return strides


def _place(tensor):
    """"cpu", "cuda", or None where it cannot be told or both can read it."""
    if hasattr(tensor, "data_ptr"):
        return {"cpu": None if getattr(tensor, "is_pinned", bool)() else "cpu", "cuda": "cuda"}.get(tensor.device.type)
    if getattr(tensor, "__cuda_array_interface__", None):
        return "cuda"
    if getattr(tensor, "__array_interface__", None):
        return "cpu"
    if hasattr(tensor, "__dlpack_device__"):
        return {1: "cpu", 2: "cuda"}.get(int(tensor.__dlpack_device__()[0]))
    return None


def _fill(out, tensor, name, device=None):
    """Writes address, element type, sizes and strides (in elements) of a tensor that has to be on `device`."""
    element = None
    if isinstance(tensor, Tensor):
        tensor, element = tensor.array, tensor.element
    place = _place(tensor)
    if device and place and place != device:
        raise TypeError(f"operand '{name}': is on {place}, but the executable runs on {device}; move the tensor there")
    if hasattr(tensor, "data_ptr"):  # torch
        out.data = tensor.data_ptr()
        sizes, strides, dtype = tensor.shape, tensor.stride(), str(tensor.dtype).rsplit(".", 1)[-1]
    elif getattr(tensor, "__cuda_array_interface__", None) or getattr(tensor, "__array_interface__", None):
        interface = getattr(tensor, "__cuda_array_interface__", None) or tensor.__array_interface__
        dtype = np.dtype(interface["typestr"])
        sizes, item = interface["shape"], dtype.itemsize
        out.data, strides = interface["data"][0], interface.get("strides")
        if strides is None:
            strides = [stride * item for stride in _contiguous(sizes)]
        if any(stride % item for stride in strides):
            raise TypeError(f"operand '{name}': its strides are not multiples of its element size; make it contiguous")
        strides, dtype = [stride // item for stride in strides], dtype.name
    elif hasattr(tensor, "__dlpack__"):
        out.data, found, dtype, sizes, strides = _from_dlpack(tensor, name)
        element = element or found
    else:
        raise TypeError(f"operand '{name}': expected a numpy array, a torch tensor, __cuda_array_interface__ or __dlpack__, "
                        f"got {type(tensor).__name__}")
    element = element or _NAMES.get(dtype)
    if element is None:
        raise TypeError(f"operand '{name}': element type {dtype} is not supported; convert it, or name its bits by Tensor")
    if len(sizes) > 8:
        raise TypeError(f"operand '{name}': expected at most 8 dimensions, got {len(sizes)}")
    out.element, out.rank = _ELEMENTS[element], len(sizes)
    for i, (size, stride) in enumerate(zip(sizes, strides)):
        out.sizes[i], out.strides[i] = size, stride


def _indices(array, keep, name):
    """A host index array; `keep` holds what must live during the call."""
    out = _Indices()
    if array is None:
        return out
    if hasattr(array, "data_ptr"):
        array = array.cpu().numpy()
    array = np.ascontiguousarray(array)
    if array.dtype not in (np.int32, np.int64):
        if array.size and array.dtype.kind not in "iu":
            raise TypeError(f"'{name}': expected integers, got {array.dtype}")
        array = array.astype(np.int64)
    keep.append(array)
    out.data, out.size, out.bits = array.ctypes.data, array.size, array.dtype.itemsize * 8
    return out


class _Handle:
    _destroy = None

    def __init__(self):
        self._handle = None

    def __del__(self):
        if getattr(self, "_handle", None):
            self._destroy(self._handle)
            self._handle = None


class Bundle(_Handle):
    """Compiled kernels and their manifest, from a path or from bytes."""

    _destroy = staticmethod(_lib.attnrtBundleDestroy)

    def __init__(self, source):
        super().__init__()
        handle = _p()
        if isinstance(source, (bytes, bytearray)):
            _check(_from_memory(bytes(source), len(source), C.byref(handle)))
        else:
            _check(_open(str(source).encode(), C.byref(handle)))
        self._handle = handle
        self.manifest = json.loads(_lib.attnrtBundleManifest(handle))


class Device(_Handle):
    """"cpu", "cuda" or "cuda:N"."""

    _destroy = staticmethod(_lib.attnrtDeviceDestroy)

    def __init__(self, name="cpu"):
        super().__init__()
        kind, _, number = str(name).partition(":")
        if kind not in ("cpu", "cuda") or not (number or "0").isdigit():
            raise ValueError(f"device {name!r}: expected \"cpu\", \"cuda\" or \"cuda:N\"")
        handle = _p()
        _check(_device_open(0 if kind == "cpu" else 1, int(number or 0), C.byref(handle)))
        self._handle = handle
        self.kind = kind
        self.name = _lib.attnrtDeviceName(handle).decode()
        self.units = _lib.attnrtDeviceUnits(handle)

    def synchronize(self, stream=None):
        _check(_synchronize(self._handle, _stream(stream)))


def cuda_devices():
    """The number of GPUs."""
    return _lib.attnrtDeviceCount(1)


class Executable(_Handle):
    """A bundle on a device."""

    _destroy = staticmethod(_lib.attnrtExecutableDestroy)

    def __init__(self, bundle, device=None):
        super().__init__()
        self.bundle = bundle if isinstance(bundle, Bundle) else Bundle(bundle)
        self.manifest = self.bundle.manifest
        if device is None:
            device = "cpu" if self.manifest["target"] == "host" else "cuda"
        self.device = device if isinstance(device, Device) else Device(device)
        handle = _p()
        _check(_load(self.bundle._handle, self.device._handle, C.byref(handle)))
        self._handle = handle

    def plan(self, *, policy="auto", chunk=0, ctas=0, units=0, maxima=None, fixed_grid=False, workspace=None, **batch):
        """Creates a plan and, when a batch is given (see Plan.plan), plans it."""
        plan = Plan(self, policy=policy, chunk=chunk, ctas=ctas, units=units, maxima=maxima, fixed_grid=fixed_grid,
                    workspace=workspace)
        if batch:
            plan.plan(**batch)
        return plan


class Plan(_Handle):
    """The schedule of a batch. `maxima`: dict of requests, tokens, kv_len, levels; sizes are then fixed."""

    _destroy = staticmethod(_lib.attnrtPlanDestroy)

    def __init__(self, executable, *, policy="auto", chunk=0, ctas=0, units=0, maxima=None, fixed_grid=False,
                 workspace=None):
        super().__init__()
        if policy not in _POLICIES:
            raise ValueError(f"policy {policy!r}: expected one of {', '.join(_POLICIES)}")
        self.executable = executable
        options = _Options(struct_size=C.sizeof(_Options), policy=_POLICIES[policy], chunk=chunk, ctas=ctas, units=units,
                           fixed_grid=int(fixed_grid), maxima=self._maxima(maxima))
        handle = _p()
        _check(_plan_create(executable._handle, C.byref(options), C.byref(handle)))
        self._handle = handle
        self._operands = _Operands(struct_size=C.sizeof(_Operands))
        self._names = [param["name"] for param in executable.manifest["params"]]
        self._device = executable.device.kind
        self._kinds = [param["kind"] for param in executable.manifest["params"]]
        self._params = (_Param * max(len(self._names), 1))()
        if workspace is not None:
            self.set_workspace(workspace)

    @staticmethod
    def _maxima(maxima):
        maxima = maxima or {}
        for name in maxima:
            if name not in ("levels", "requests", "tokens", "kv_len"):
                raise TypeError(f"unknown maximum {name!r}; expected levels, requests, tokens or kv_len")
        return _Maxima(struct_size=C.sizeof(_Maxima), **maxima)

    def workspace_size(self, **maxima):
        """Bytes of workspace for those maxima."""
        out = _i64()
        _check(_workspace_size(self._handle, C.byref(self._maxima(maxima)), C.byref(out)))
        return out.value

    def set_workspace(self, tensor):
        """Uses a tensor's memory; it has to live as long as the plan."""
        described = _Tensor()
        _fill(described, tensor, "workspace", self._device)
        size = int(np.prod([described.sizes[i] for i in range(described.rank)]))
        item = {0: 4, 1: 2, 2: 2, 6: 4, 7: 8}.get(described.element, 1)
        _check(_set_workspace(self._handle, described.data, size * item))
        self._workspace = tensor

    def plan(self, *, qo_indptr, kv_indptr=None, kv_last=None, pages=None, levels=None, row_indptr=None, kv_total=None,
             params=None, stream=None):
        """Plans a batch: one level by kv_indptr, kv_last, pages, or several by `levels`, a list of dicts of those keys."""
        keep = []
        if levels is None:
            levels = [dict(kv_indptr=kv_indptr, kv_last=kv_last, pages=pages, row_indptr=row_indptr)]
        table = (_Level * max(len(levels), 1))()
        pages_kept = []
        for i, level in enumerate(levels):
            for key in ("kv_indptr", "kv_last", "row_indptr"):
                setattr(table[i], key, _indices(level.get(key), keep, f"{key} of level {i}"))
            if level.get("pages") is not None:
                described = _Tensor()
                _fill(described, level["pages"], f"pages of level {i}", self._device)
                bits = self.executable.manifest["index_bits"]
                if described.element != (6 if bits == 32 else 7) or described.rank != 1 or (
                        described.sizes[0] > 1 and described.strides[0] != 1):
                    raise TypeError(f"pages of level {i}: expected a contiguous int{bits} array of rank 1")
                table[i].pages = described.data
                pages_kept.append(level["pages"])
        batch = _Batch(struct_size=C.sizeof(_Batch), num_levels=len(levels), levels=table)
        batch.qo_indptr = _indices(qo_indptr, keep, "qo_indptr")
        batch.kv_total = _indices(kv_total, keep, "kv_total")
        if params is not None:
            values = (_PlanParam * max(len(self._names), 1))()
            for i, (name, kind) in enumerate(zip(self._names, self._kinds)):
                if kind == "f32":
                    values[i].f32 = params.get(name, 0)
                elif kind == "index":
                    values[i].index = params.get(name, 0)
                elif isinstance(params.get(name), np.ndarray):  # a host copy: the mask analysis may read it
                    array = np.ascontiguousarray(params[name])
                    keep.append(array)
                    values[i].host, values[i].host_size = array.ctypes.data, array.size
            batch.params, batch.num_params = values, len(self._names)
        _check(_plan(self._handle, C.byref(batch), _stream(stream)))
        self._pages = pages_kept  # the kernels read them
        return self

    def run(self, *, q, k, v, o, lse=None, params=None, scale=None, stream=None):
        """Launches the plan; asynchronous on CUDA."""
        operands = self._operands
        for name, tensor in (("q", q), ("k", k), ("v", v), ("o", o)):
            _fill(getattr(operands, name), tensor, name, self._device)
        if lse is not None:
            _fill(operands.lse, lse, "lse", self._device)
        else:
            operands.lse.data = None
        params = params or {}
        unknown = set(params) - set(self._names)
        if unknown:
            raise TypeError(f"unknown parameter {sorted(unknown)[0]!r}; the variant has {', '.join(self._names) or 'none'}")
        for i, (name, kind) in enumerate(zip(self._names, self._kinds)):
            if name not in params:
                raise TypeError(f"missing parameter {name!r}; pass it in params")
            if kind == "f32":
                self._params[i].f32 = params[name]
            elif kind == "index":
                self._params[i].index = params[name]
            else:
                _fill(self._params[i].buffer, params[name], name, self._device)
        operands.params, operands.num_params = self._params, len(self._names)
        operands.has_scale, operands.scale = (0, 0.0) if scale is None else (1, scale)
        _check(_run(self._handle, C.byref(operands), _stream(stream)))
        return o

    def _text(self, function):
        out = _p()
        _check(function(self._handle, C.byref(out)))
        try:
            return C.string_at(out).decode()
        finally:
            _lib.attnrtFreeString(out)

    def describe(self):
        """The plan as a dict: items, CTAs, chunks, costs."""
        return json.loads(self._text(_describe))

    def svg(self):
        """The plan as a picture."""
        return self._text(_svg)
