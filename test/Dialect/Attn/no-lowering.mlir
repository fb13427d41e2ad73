// RUN: attn-opt %s --attn-to-tile -split-input-file -verify-diagnostics

func.func @merge(%a: memref<?x8x64xf32>, %la: memref<?x8xf32>, %o: memref<?x8x64xbf16>) {
  // expected-error@+1 {{'attn.merge' op has no lowering yet; the runtime merges partial states, and pages are written by the caller}}
  attn.merge states(%a, %a : memref<?x8x64xf32>, memref<?x8x64xf32>) lse(%la, %la : memref<?x8xf32>, memref<?x8xf32>)
    outs(%o : memref<?x8x64xbf16>)
  return
}

// -----

func.func @append(%n: memref<?x2x64xbf16>, %t: memref<?xi32>, %k: memref<?x16x2x64xbf16>) {
  // expected-error@+1 {{'attn.append' op has no lowering yet}}
  attn.append (%n, %n, %t : memref<?x2x64xbf16>, memref<?x2x64xbf16>, memref<?xi32>) into (%k, %k : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>)
    table (%t, %t, %t : memref<?xi32>, memref<?xi32>, memref<?xi32>)
  return
}
