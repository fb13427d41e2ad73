// The host's forms are vectors all the way down: no call, no scalar loop.
// RUN: attn-opt %s --attn-legalize-math=target=host --canonicalize --cse --convert-math-to-llvm --convert-vector-to-llvm --convert-arith-to-llvm --convert-func-to-llvm --reconcile-unrealized-casts \
// RUN:   | mlir-translate --mlir-to-llvmir | opt -O2 | llc -mtriple=x86_64-linux-gnu -mattr=+avx2,+fma | FileCheck %s

// CHECK-LABEL: f:
// CHECK-NOT: call
// CHECK-NOT: ss %xmm
// CHECK: vfmadd{{.*}}ps
// CHECK-NOT: call
// CHECK-NOT: ss %xmm
// CHECK: retq
func.func @f(%x: vector<8xf32>) -> vector<8xf32> {
  %0 = math.exp %x : vector<8xf32>
  %1 = math.log %0 : vector<8xf32>
  %2 = math.tanh %1 : vector<8xf32>
  %3 = math.sin %2 : vector<8xf32>
  %4 = math.cos %3 : vector<8xf32>
  %5 = math.rsqrt %4 : vector<8xf32>
  %6 = math.log2 %5 : vector<8xf32>
  %7 = math.exp2 %6 fastmath<afn> : vector<8xf32>
  %8 = math.floor %7 : vector<8xf32>
  %9 = math.ceil %8 : vector<8xf32>
  return %9 : vector<8xf32>
}
