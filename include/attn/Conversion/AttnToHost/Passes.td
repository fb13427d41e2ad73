//===- Passes.td - what stays in the caller's function -----*- tablegen -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CONVERSION_ATTNTOHOST_PASSES
#define ATTN_CONVERSION_ATTNTOHOST_PASSES

include "mlir/Pass/PassBase.td"

def ConvertAttnToLoopsPass : Pass<"convert-attn-to-loops", "::mlir::ModuleOp"> {
  let summary = "attn.merge and attn.append become loops, or a gpu.launch";
  let description = [{
    For programs that hold the op in a function of their own. On the host a
    merge is an `scf.parallel` over tokens and heads, an append one over
    requests; on a GPU each is a `gpu.launch`, which gpu-kernel-outlining makes
    a kernel of. Only arith, memref, scf and, on a GPU, llvm intrinsics remain:
    exp and log are expanded as attn-legalize-math expands them.

    ```
    attn.merge states(%a, %b : ...) lse(%la, %lb : ...) outs(%o, %lse : ...)
    // becomes
    scf.parallel (%t, %h) = (%c0, %c0) to (%tokens, %heads) step (%c1, %c1) { ... }
    ```
  }];
  let options = [
    Option<"target", "target", "::mlir::attn::LoopTarget", "::mlir::attn::LoopTarget::Host", "host or gpu",
           [{::llvm::cl::values(
               clEnumValN(::mlir::attn::LoopTarget::Host, "host", "scf.parallel"),
               clEnumValN(::mlir::attn::LoopTarget::Gpu, "gpu", "gpu.launch"))}]>
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect",
                           "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
  let statistics = [Statistic<"numOps", "num-ops", "ops lowered">];
}

def AttnToLaunchPass : Pass<"attn-to-launch", "::mlir::ModuleOp"> {
  let summary = "attn.attention becomes launches of its kernels";
  let description = [{
    Before: attn-to-tile and convert-tile-to-gpu (or convert-tile-to-cpu) have
    made the kernels of each `attn.attention`, which still stands in its
    function. After: one `gpu.launch_func` (or an `scf.parallel` of calls) for
    each tile class, then one for the merge. What a plan holds becomes arguments of that function, appended in this order and marked
    with `attn.plan` (the array, as ABI.h names it) and, where a kernel has its
    own, `attn.kernel`: for each kernel `items` (memref<?x16xi32>, the words of
    AttnWorkItem), `cta_indptr` (memref<?xi32>, its size less one is the grid)
    and `counter` where it has one; then, where any kernel reads it, `tokens`,
    `pieces`, `part_o` and `part_lse`. A function with callers in the module is refused.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect", "::mlir::gpu::GPUDialect",
                           "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
  let statistics = [Statistic<"numLaunches", "num-launches", "launches made">];
}

def AttnLegalizeHostKernelsPass : Pass<"attn-legalize-host-kernels", "::mlir::ModuleOp"> {
  let summary = "the math of host kernels without libm";
  let description = [{
    attn-legalize-math for the host, on the functions with `attn.words` that
    convert-tile-to-cpu makes. The caller's own functions stand in the same
    module; their math is not ours to change.

    ```
    func.func @mine(%x: f32) -> f32 { %y = math.exp %x : f32 ... }                                  // stays
    func.func @attn_64(%words: !llvm.ptr, ...) attributes {attn.words = [...]} { math.exp2 ... }    // becomes arith
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
  let statistics = [Statistic<"numKernels", "num-kernels", "kernels rewritten">];
}

def AttnGpuToBinaryPass : Pass<"attn-gpu-to-binary", "::mlir::ModuleOp"> {
  let summary = "each gpu.module of llvm functions becomes a gpu.binary";
  let description = [{
    The object is machine code where a ptxas is found, else PTX, which the driver
    compiles when it is loaded; `format` asks for one of them. Kernels that spill
    registers are refused, as attn-compile refuses them.
  }];
  let options = [
    Option<"chip", "chip", "std::string", "\"\"", "machine of modules without 'attn.chip', for example sm_90a">,
    Option<"ptxas", "ptxas", "std::string", "\"\"", "the ptxas to use">,
    Option<"format", "format", "std::string", "\"auto\"", "auto, bin or ptx">
  ];
  let dependentDialects = ["::mlir::gpu::GPUDialect", "::mlir::NVVM::NVVMDialect"];
}

#endif
