// A step keeps the row maximum unless the block's is much above it, and warps that keep theirs leave the accumulator as
// it is. What the kernel means stays: the interpreter runs it.

// RUN: sed -e 's/?x4x32xbf16/?x4x96xbf16/; s/?x4x2x32x/?x4x2x96x/; s/?x32x/?x96x/; s/<32x32x/<32x96x/; s/16x32xbf16/16x96xbf16/' %S/Inputs/hopper.mlir > %t.wide.mlir
// RUN: attn-opt %t.wide.mlir --tile-assign-layouts --tile-defer-sums --tile-reverse-keys --tile-skew-dots --tile-peel-masks --tile-warp-specialize -o %t.roles.mlir
// RUN: attn-opt %t.roles.mlir --tile-rescale-rarely -o %t.mlir
// RUN: FileCheck %s --input-file=%t.mlir
// RUN: attn-interpret %t.mlir --runs=6 | FileCheck %s --check-prefix=RIGHT
// RUN: attn-interpret %t.mlir --runs=4 --split=2 --seed=50 | FileCheck %s --check-prefix=RIGHT
// RUN: attn-interpret %t.mlir --batch=32:16,31:40,64:0 --against-file=%t.roles.mlir | FileCheck %s --check-prefix=RIGHT

// Logits so far apart that maxima grow by more than 2^8 again and again, and accumulators are scaled: without that they overflow.
// RUN: sed -e 's/1.44269502/577.0/' %t.roles.mlir > %t.steep.mlir
// RUN: attn-opt %t.steep.mlir --tile-rescale-rarely | attn-interpret --runs=4 --against-file=%t.steep.mlir | FileCheck %s --check-prefix=RIGHT
// RUN: attn-opt %t.steep.mlir --tile-rescale-rarely | sed -e 's/8.000000e+00/1.000000e+30/' | not attn-interpret --runs=4 --against-file=%t.steep.mlir 2>&1 | FileCheck %s --check-prefix=APART
// APART: error: 'tile.kernel' op gives lse INF

// The code: a warp comes to the products by a vote, and past them with the accumulator as it was.
// RUN: attn-compile %attn_src_root/examples/variants/softcap.mlir --target=sm_90a --kernel=softcap_r128 --emit=llvm | FileCheck %s --check-prefix=CODE
// CODE: %[[ANY:.*]] = call i1 @llvm.nvvm.vote.any.sync(i32 -1
// CODE-NEXT: br i1 %[[ANY]], label %[[MULTIPLY:[0-9]+]], label %[[REST:[0-9]+]]
// CODE: [[MULTIPLY]]:
// CODE-COUNT-64: fmul float
// CODE-NEXT: br label %[[REST]]
// CODE: [[REST]]:
// CODE-NEXT: phi float [ %[[P:[0-9]+]], %[[MULTIPLY]] ], [

// A second time there is nothing left, and accumulators of 32 columns cost less than finding out.
// RUN: attn-opt %t.mlir --tile-rescale-rarely | diff - %t.mlir
// RUN: attn-opt %S/Inputs/hopper.mlir --tile-assign-layouts --tile-skew-dots --tile-rescale-rarely | FileCheck %s --check-prefix=NARROW

// RIGHT: @prefill: {{[0-9]+}} rows, largest error of o
// NARROW-NOT: tile.skips_ones

// CHECK: tile.role @consumer
// The first block has no maximum to keep.
// CHECK: tile.reduce maximumf
// CHECK-NOT: 8.000000e+00
// CHECK: scf.for {{.*}} iter_args(%[[OLD:[a-z0-9]+]] = {{.*}}
// CHECK: %[[NEW:.*]] = tile.reduce maximumf %{{.*}} dim 1 init %[[OLD]]
// CHECK-NEXT: %[[KEPT:.*]] = tile.map (%[[B:.*]] = %[[OLD]] : {{.*}}, %[[N:.*]] = %[[NEW]] : {{.*}}, %[[B1:.*]] = %[[OLD]] : {{.*}}, %[[N1:.*]] = %[[NEW]] :
// CHECK-NEXT: %[[MOST:.*]] = arith.constant 8.000000e+00
// CHECK-NEXT: %[[BOUND:.*]] = arith.addf %[[B1]], %[[MOST]]
// CHECK-NEXT: %[[STAYS:.*]] = arith.cmpf ole, %[[N1]], %[[BOUND]]
// CHECK-NEXT: arith.select %[[STAYS]], %[[B]], %[[N]]
// What is made of the maximum is made of both: only a selection stands between the new one and the weights.
// CHECK: %[[CHOSEN:[0-9]+]] = tile.map ({{.*}} = %[[OLD]] : {{.*}} = %[[NEW]] :
// CHECK: %[[FACTOR:.*]] = tile.map ({{.*}} = %[[OLD]] {{.*}} = %[[CHOSEN]] {{.*}} = %[[NEW]]
// CHECK: %[[POWER:.*]] = math.exp2
// CHECK: %[[ONE:.*]] = arith.constant 1.000000e+00
// CHECK: arith.select %{{.*}}, %[[ONE]], %[[POWER]]
// CHECK: tile.map {{.*}} = %[[CHOSEN]][0]
// CHECK: math.exp2
// CHECK: tile.map arith.mulf(%{{.*}}, %[[FACTOR]][0]{{.*}}) {tile.skips_ones}
// CHECK: scf.yield %[[KEPT]]

// The attribute on anything but a product with a factor means nothing to the code.
// RUN: sed -e 's/, consumers = 2, load = tma//' %S/Inputs/hopper.mlir | attn-opt --pass-pipeline='builtin.module(tile.kernel(canonicalize,cse,attn-schedule-kernel))' -o %t.p.mlir
// RUN: sed -e 's/tile.map arith.truncf(\([^)]*\)) ->/tile.map arith.truncf(\1) {tile.skips_ones} ->/' %t.p.mlir > %t.odd.mlir
// RUN: grep -q 'truncf.*skips_ones' %t.odd.mlir
// RUN: attn-opt %t.odd.mlir --convert-tile-to-gpu=chip=sm_90a | FileCheck %s --check-prefix=ODD
// ODD-NOT: vote
// ODD: llvm.func @prefill
// ODD-NOT: vote
