"""The compiler's Python API."""

import os
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
