// RUN: attn-compile %s --target=sm_90a --emit=ptx --kernel=branch_r128 | FileCheck %s
// RUN: attn-compile %s --target=sm_80 --emit=ptx --kernel=branch_r128 | FileCheck %s --check-prefix=SM80

// Where products are in flight a branch of a hook has no branch in the code: both arms run, loads are made where their
// arm is taken. Without products in flight the branch stays.

// CHECK: wgmma.mma_async
// CHECK: @p ld.global.nc.u32 %r[[A:[0-9]+]], [%rd{{[0-9]+}}]; @!p mov.b32 %r[[A]], 0;
// CHECK: @p ld.global.nc.u8 %rs[[B:[0-9]+]], [%rd{{[0-9]+}}]; @!p mov.b16 %rs[[B]], 0;
// CHECK: @p ld.global.nc.u16 %rs[[C:[0-9]+]], [%rd{{[0-9]+}}]; @!p mov.b16 %rs[[C]], 0;
// CHECK: @p ld.global.nc.u64 %rd[[D:[0-9]+]], [%rd{{[0-9]+}}]; @!p mov.b64 %rd[[D]], 0;
// SM80: mma.sync
// SM80-NOT: @p ld.global
attn.variant @branch(%table: memref<?xf32>, %bytes: memref<?xi8>, %half: memref<?xf16>, %wide: memref<?xi64>) {
  %zero = arith.constant 0 : index
  attn.hook logits (%x: f32, %at: !attn.coord) {
    %k = attn.kv_pos %at
    %h = attn.q_head %at
    %some = arith.cmpi sgt, %k, %h : index
    %y = scf.if %some -> f32 {
      %b = memref.load %table[%k] : memref<?xf32>
      %flag = memref.load %bytes[%k] : memref<?xi8>
      %on = arith.trunci %flag : i8 to i1
      %more = scf.if %on -> f32 {
        %c = memref.load %half[%h] : memref<?xf16>
        %cf = arith.extf %c : f16 to f32
        scf.yield %cf : f32
      } else {
        %w = memref.load %wide[%h] : memref<?xi64>
        %wf = arith.sitofp %w : i64 to f32
        scf.yield %wf : f32
      }
      %s = arith.addf %x, %b : f32
      %t = arith.addf %s, %more : f32
      scf.yield %t : f32
    } else {
      scf.yield %x : f32
    }
    attn.yield %y : f32
  }
  attn.hook mask (%at: !attn.coord) {
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %in = arith.cmpi sle, %k, %q : index
    attn.yield %in : i1
  }
}
func.func @attend(%q: memref<?x8x64xbf16>, %qo: memref<?xi32>, %k: memref<?x16x2x64xbf16>, %v: memref<?x16x2x64xbf16>, %indptr: memref<?xi32>, %indices: memref<?xi32>, %last: memref<?xi32>, %o: memref<?x8x64xbf16>, %table: memref<?xf32>, %bytes: memref<?xi8>, %half: memref<?xf16>, %wide: memref<?xi64>) {
  attn.attention @branch(%table, %bytes, %half, %wide : memref<?xf32>, memref<?xi8>, memref<?xf16>, memref<?xi64>) q(%q, %qo : memref<?x8x64xbf16>, memref<?xi32>) kv(%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>) indptr(%indptr : memref<?xi32>) indices(%indices : memref<?xi32>) last(%last : memref<?xi32>) outs(%o : memref<?x8x64xbf16>) {format = #attn.format<paged>}
  return
}
