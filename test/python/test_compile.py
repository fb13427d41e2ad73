"""The compiler's Python API."""

import ctypes
import pathlib

import pytest

import attn_mlir

VARIANTS = pathlib.Path(__file__).resolve().parents[2] / "examples" / "variants"


def test_bundle_starts_with_the_magic():
    bundle = attn_mlir.compile_file(VARIANTS / "causal.mlir")
    assert bundle[:8] == b"ATTNBNDL"


def test_tile_ir_is_text():
    assert "tile.kernel" in attn_mlir.compile_file(VARIANTS / "causal.mlir", emit="tile")


def test_same_input_same_bundle():
    first, second = (attn_mlir.compile_file(VARIANTS / "causal.mlir") for _ in range(2))
    assert first == second


@pytest.mark.parametrize("options, text", [
    ({"target": "sm_12"}, "unknown target 'sm_12'"),
    ({"emit": "wasm"}, "unknown emit 'wasm'"),
])
def test_bad_options(options, text):
    with pytest.raises(attn_mlir.CompileError, match=text):
        attn_mlir.compile_file(VARIANTS / "causal.mlir", **options)


def test_bad_ir_gives_the_place():
    with pytest.raises(attn_mlir.CompileError, match="ir:1:1"):
        attn_mlir.compile("nonsense")


def test_no_attention_op():
    with pytest.raises(attn_mlir.CompileError, match="no attn.attention"):
        attn_mlir.compile("module {}")


def test_cache(tmp_path):
    first = attn_mlir.compile_file(VARIANTS / "causal.mlir", cache_dir=tmp_path)
    entries = list(tmp_path.iterdir())
    assert len(entries) == 1
    assert attn_mlir.compile_file(VARIANTS / "causal.mlir", cache_dir=tmp_path) == first
    # A damaged entry is rebuilt.
    data = bytearray(entries[0].read_bytes())
    data[100] ^= 1
    entries[0].write_bytes(data)
    assert attn_mlir.compile_file(VARIANTS / "causal.mlir", cache_dir=tmp_path) == first
    assert bytes(data) != entries[0].read_bytes()


def test_cache_directory_that_cannot_be(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(attn_mlir.CompileError, match="cache directory '.*file/cache' cannot be created"):
        attn_mlir.compile_file(VARIANTS / "causal.mlir", cache_dir=file / "cache")


def test_only_one_kernel():
    with pytest.raises(attn_mlir.CompileError, match="no kernel 'fast'; there are causal_r16, causal_merge"):
        attn_mlir.compile_file(VARIANTS / "causal.mlir", kernel="fast")
    assert attn_mlir.compile_file(VARIANTS / "causal.mlir", emit="tile", kernel="causal_merge").count("tile.kernel") == 1


def test_verifier_text_reaches_python():
    text = (VARIANTS / "causal.mlir").read_text().replace("arith.cmpi sle, %k, %q : index", "math.powf %k, %q : index")
    with pytest.raises(attn_mlir.CompileError, match=r"ir:\d+:\d+: error: "):
        attn_mlir.compile(text)


def test_arguments_of_the_c_api():
    from attn_mlir import _compiler
    lib = _compiler._lib()
    options, result = _compiler._Options(ctypes.sizeof(_compiler._Options), b"host"), ctypes.c_void_p()
    small = _compiler._Options(4, b"host")
    for arguments, text in [
        ((b"", 0, ctypes.byref(options), None), "result is null; pass the address of a handle"),
        ((None, 0, ctypes.byref(options), ctypes.byref(result)), "ir is null; pass the text of a module"),
        ((b"", 0, None, ctypes.byref(result)), "options has an unknown size; set options.size to sizeof"),
        ((b"", 0, ctypes.byref(small), ctypes.byref(result)), "options has an unknown size"),
    ]:
        assert lib.attnCompile(*arguments) == 1
        assert lib.attnCompilerLastError().decode().startswith(text)
        assert not result.value


def test_library_of_another_version(monkeypatch):
    from attn_mlir import _compiler
    monkeypatch.setattr(_compiler, "API_VERSION", 99)
    _compiler._lib.cache_clear()
    with pytest.raises(ImportError, match="libAttnCompiler.so has API version 2, expected 99"):
        _compiler._lib()
    _compiler._lib.cache_clear()


def test_isolated_code_generation(monkeypatch):
    here = attn_mlir.compile_file(VARIANTS / "causal.mlir", target="sm_80", emit="ptx", kernel="causal_r16")
    assert attn_mlir.compile_file(VARIANTS / "causal.mlir", target="sm_80", emit="ptx", kernel="causal_r16", isolate=60) == here
    monkeypatch.setenv("ATTN_CODEGEN_DIE_BY", "abort")
    with pytest.raises(attn_mlir.CompileError, match="kernels causal_r16 .* for sm_80: code generation crashed"):
        attn_mlir.compile_file(VARIANTS / "causal.mlir", target="sm_80", emit="ptx", kernel="causal_r16", isolate=60)


def test_measured_configs(tmp_path):
    with pytest.raises(attn_mlir.CompileError, match="cannot read '.*none.json'"):
        attn_mlir.compile_file(VARIANTS / "causal.mlir", tuned=tmp_path / "none.json")
    assert attn_mlir.compile_file(VARIANTS / "causal.mlir", tuned="off", emit="tile")
