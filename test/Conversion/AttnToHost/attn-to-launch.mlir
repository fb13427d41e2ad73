// RUN: attn-opt %s --attn-to-gpu-binary="chip=sm_80 format=ptx" | FileCheck %s
// RUN: attn-opt %s --attn-to-gpu-binary="chip=sm_80 format=ptx" | attn-opt --gpu-to-llvm | FileCheck %s --check-prefix=HOST

// CHECK: module attributes {gpu.container_module}
// CHECK-NOT: attn.variant
attn.variant @capped(%cap: f32, %left: index, %bias: memref<?xf32>) {
  attn.hook logits (%x: f32, %at: !attn.coord) {
    %h = attn.q_head %at
    %b = memref.load %bias[%h] : memref<?xf32>
    %0 = arith.divf %x, %cap : f32
    %1 = math.tanh %0 : f32
    %2 = arith.addf %1, %b : f32
    attn.yield %2 : f32
  }
  attn.hook mask (%at: !attn.coord) {
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %d = arith.subi %q, %k : index
    %in = arith.cmpi sle, %d, %left : index
    attn.yield %in : i1
  }
}

// What the caller computes besides is left alone.
// CHECK-LABEL: func.func @attend
// CHECK-SAME: memref<?xi64>, %[[O:[^:]*]]: memref<?x8x64xbf16, strided<[?, 64, 1], offset: ?>>
// CHECK-SAME: %[[CAP:[^:]*]]: f32, %{{[^:]*}}: index, %{{[^:]*}}: memref<?xf32>, %{{[^:]*}}: f32
// CHECK-SAME: memref<?x16xi32> {attn.kernel = "capped_r16", attn.plan = "items"}
// CHECK-SAME: %[[GRID:[^:]*]]: memref<?xi32> {attn.kernel = "capped_r16", attn.plan = "cta_indptr"}
// CHECK-SAME: memref<?x16xi32> {attn.kernel = "capped_merge", attn.plan = "items"}
// CHECK: math.exp
// CHECK-NOT: attn.attention
// CHECK: memref.extract_strided_metadata
// CHECK: gpu.launch_func @attn_kernels::@capped_r16 blocks in (%{{.*}}, %{{.*}}, %{{.*}}) threads in (%{{.*}}, %{{.*}}, %{{.*}}) dynamic_shared_memory_size %{{.*}} args(
// CHECK: gpu.launch_func @attn_kernels::@capped_r64
// CHECK: gpu.launch_func @attn_kernels::@capped_r128
// CHECK: gpu.launch_func @attn_kernels::@capped_merge
// CHECK-NEXT: return
// CHECK: gpu.binary @attn_kernels [#gpu.object<#nvvm.target<O = 3, chip = "sm_80"{{.*}}>, assembly = "
// CHECK-SAME: .entry capped_r16
// HOST-COUNT-4: gpu.launch_func {{.*}} : i64
func.func @attend(%q: memref<?x8x64xbf16>, %qi: memref<?xi32>, %k: memref<?x16x2x64xbf16>, %v: memref<?x16x2x64xbf16>,
                  %kvi: memref<?xi32>, %pages: memref<?xi64>, %last: memref<?xi64>,
                  %o: memref<?x8x64xbf16, strided<[?, 64, 1], offset: ?>>, %lse: memref<?x8xf32>, %cap: f32, %left: index,
                  %bias: memref<?xf32>, %x: f32) -> f32 {
  %e = math.exp %x : f32
  attn.attention @capped(%cap, %left, %bias : f32, index, memref<?xf32>) scale %x
    q(%q, %qi : memref<?x8x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>)
    indptr(%kvi : memref<?xi32>) indices(%pages : memref<?xi64>) last(%last : memref<?xi64>)
    outs(%o : memref<?x8x64xbf16, strided<[?, 64, 1], offset: ?>>, %lse : memref<?x8xf32>) {format = #attn.format<paged>}
  return %e : f32
}
