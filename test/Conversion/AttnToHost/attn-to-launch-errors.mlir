// RUN: attn-opt %s --attn-to-launch -split-input-file -verify-diagnostics

func.func @no_kernels(%q: memref<?x8x64xf16>, %t: memref<?xi32>, %k: memref<?x2x64xf16>) {
  // expected-error @+1 {{'attn.attention' op has no kernels; run attn-to-tile and convert-tile-to-gpu before attn-to-launch}}
  attn.attention q(%q, %t : memref<?x8x64xf16>, memref<?xi32>) kv(%k, %k : memref<?x2x64xf16>, memref<?x2x64xf16>)
    indptr(%t : memref<?xi32>) outs(%q : memref<?x8x64xf16>) {format = #attn.format<ragged>}
  return
}

// -----

func.func @no_gpu_code(%q: memref<?x8x64xf16>, %t: memref<?xi32>, %k: memref<?x2x64xf16>) {
  // expected-error @+1 {{has kernel @attention_r16 in no gpu.module; run convert-tile-to-gpu before attn-to-launch}}
  attn.attention q(%q, %t : memref<?x8x64xf16>, memref<?xi32>) kv(%k, %k : memref<?x2x64xf16>, memref<?x2x64xf16>)
    indptr(%t : memref<?xi32>) outs(%q : memref<?x8x64xf16>)
    {format = #attn.format<ragged>, attn.kernels = [@attention_r16], attn.merge = @attention_merge}
  return
}

// -----

func.func private @caller(%q: memref<?x8x64xf16>, %t: memref<?xi32>, %k: memref<?x2x64xf16>) {
  func.call @called(%q, %t, %k) : (memref<?x8x64xf16>, memref<?xi32>, memref<?x2x64xf16>) -> ()
  return
}
func.func @called(%q: memref<?x8x64xf16>, %t: memref<?xi32>, %k: memref<?x2x64xf16>) {
  // expected-error @+1 {{is in @called, which others refer to; its plan becomes arguments of the function: inline the function or keep the op in one without callers}}
  attn.attention q(%q, %t : memref<?x8x64xf16>, memref<?xi32>) kv(%k, %k : memref<?x2x64xf16>, memref<?x2x64xf16>)
    indptr(%t : memref<?xi32>) outs(%q : memref<?x8x64xf16>)
    {format = #attn.format<ragged>, attn.kernels = [@attention_r16], attn.merge = @attention_merge}
  return
}

// -----

gpu.module @m {
  gpu.func @f(%q: memref<?x8x64xf16>, %t: memref<?xi32>, %k: memref<?x2x64xf16>) {
    // expected-error @+1 {{is not in a func.func of a module}}
    attn.attention q(%q, %t : memref<?x8x64xf16>, memref<?xi32>) kv(%k, %k : memref<?x2x64xf16>, memref<?x2x64xf16>)
      indptr(%t : memref<?xi32>) outs(%q : memref<?x8x64xf16>) {format = #attn.format<ragged>}
    gpu.return
  }
}

// -----

gpu.module @m {
  llvm.func @attention_r16()
  llvm.func @attention_merge()
}
func.func @no_words(%q: memref<?x8x64xf16>, %t: memref<?xi32>, %k: memref<?x2x64xf16>) {
  // expected-error @+1 {{kernel 'attention_r16' has no 'attn.words'; run convert-tile-to-gpu first}}
  attn.attention q(%q, %t : memref<?x8x64xf16>, memref<?xi32>) kv(%k, %k : memref<?x2x64xf16>, memref<?x2x64xf16>)
    indptr(%t : memref<?xi32>) outs(%q : memref<?x8x64xf16>)
    {format = #attn.format<ragged>, attn.kernels = [@attention_r16], attn.merge = @attention_merge}
  return
}

// -----

gpu.module @m {
  llvm.func @attention_r16() attributes {attn.words = [], attn.maps = [{operand = "k"}], attn.threads = 128 : i64, attn.smem = 0 : i64}
  llvm.func @attention_merge()
}
func.func @maps(%q: memref<?x8x64xf16>, %t: memref<?xi32>, %k: memref<?x2x64xf16>) {
  // expected-error @+1 {{kernel 'attention_r16' reads through tensor maps, which a launch from IR does not make; use configs with load = gather, or a bundle and the runtime}}
  attn.attention q(%q, %t : memref<?x8x64xf16>, memref<?xi32>) kv(%k, %k : memref<?x2x64xf16>, memref<?x2x64xf16>)
    indptr(%t : memref<?xi32>) outs(%q : memref<?x8x64xf16>)
    {format = #attn.format<ragged>, attn.kernels = [@attention_r16], attn.merge = @attention_merge}
  return
}

// -----

gpu.module @m {
  llvm.func @attention_r16() attributes {attn.words = [{kind = "pointer", operand = "lse"}], attn.threads = 128 : i64, attn.smem = 0 : i64}
  llvm.func @attention_merge()
}
func.func @unknown(%q: memref<?x8x64xf16>, %t: memref<?xi32>, %k: memref<?x2x64xf16>) {
  // expected-error @+1 {{kernel 'attention_r16' takes {kind = "pointer", operand = "lse"}, which a launch from IR does not have}}
  attn.attention q(%q, %t : memref<?x8x64xf16>, memref<?xi32>) kv(%k, %k : memref<?x2x64xf16>, memref<?x2x64xf16>)
    indptr(%t : memref<?xi32>) outs(%q : memref<?x8x64xf16>)
    {format = #attn.format<ragged>, attn.kernels = [@attention_r16], attn.merge = @attention_merge}
  return
}
