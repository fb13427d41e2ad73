//===- Passes.td - passes on the attn dialect --------------*- tablegen -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_ATTN_PASSES
#define ATTN_ATTN_PASSES

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// Math
//===----------------------------------------------------------------------===//

def LegalizeMathPass : Pass<"attn-legalize-math"> {
  let summary = "rewrites the closed list of math functions into what the target has";
  let description = [{
    Works on every math op of scalars and vectors of f32 in the op it runs on
    (hooks, bodies of tile.map, functions). After it, only these math ops
    remain: for gpu exp2, log2, tanh, sin, cos and rsqrt with `afn`, and sqrt,
    fma, absf; for host sqrt, fma, absf. Everything else has become arith.
    With `afn` on a function its fast form is taken, without it the accurate
    one; docs/Spec.md has the error of each. Functions outside the list and
    other types are errors.

    Example, for gpu: `math.exp %x fastmath<afn>` becomes
    ```
    %c = arith.constant 1.44269502 : f32
    %0 = arith.mulf %x, %c : f32
    %1 = math.exp2 %0 fastmath<afn> : f32
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
  let options = [
    Option<"target", "target", "::mlir::attn::MathTarget", "::mlir::attn::MathTarget::Gpu", "gpu or host",
           [{::llvm::cl::values(
               clEnumValN(::mlir::attn::MathTarget::Gpu, "gpu", "approximations of the hardware remain"),
               clEnumValN(::mlir::attn::MathTarget::Host, "host", "polynomials, no call of libm"))}]>
  ];
}

//===----------------------------------------------------------------------===//
// Configs and masks
//===----------------------------------------------------------------------===//

def AttnSelectConfigPass : Pass<"attn-select-config", "::mlir::ModuleOp"> {
  let summary = "chooses a #attn.config per tile class for each attn.attention";
  let description = [{
    Before: `attn.attention`, with or without `target`. After: `target` is set
    (to the option when the op had none) and `configs` lists one config per tile
    class that fits, ascending in rows. Configs that are there already are kept
    and checked: one that does not fit registers or shared memory is an error
    that says by how much. The cost model is described in docs/Configs.md.
  }];
  let options = [
    Option<"target", "target", "std::string", "\"host\"", "chip for ops without a target">,
    Option<"tensorCopies", "tensor-copies", "bool", "true",
           "choose tensor copies and roles where the chip has them; a launch from IR cannot make the maps that they need">
  ];
  let statistics = [Statistic<"numConfigs", "num-configs", "configs chosen">];
}

def AttnMaskRangePass : Pass<"attn-mask-range", "::mlir::ModuleOp"> {
  let summary = "makes the range function of each variant, from its mask hook";
  let description = [{
    Adds `func.func @NAME_range(qpos0, tokens, qo_len, kv_len, request,
    params...) -> (lo, full_lo, full_hi, hi)` for each `attn.variant @NAME`, with
    the serialised program as attribute `attn.range` (RANGE in the ABI header):
    no token sees keys outside [lo, hi), all see the keys of [full_lo, full_hi).
    attn-to-tile does the same for the variants that it compiles.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect", "::mlir::memref::MemRefDialect"];
}

def AttnCheckRangePass : Pass<"attn-check-range", "::mlir::ModuleOp"> {
  let summary = "compares range programs with their masks at all small positions";
  let description = [{
    For tests: evaluates the mask hook of each variant at every query and key of
    small requests, with several values of the parameters, and compares with its
    range program. An unsound program is an error; else a remark says whether the
    hull [lo, hi) and the interior were exact everywhere.
  }];
  let options = [Option<"maxKeys", "max-keys", "int64_t", "9", "largest kv_len">,
                 Option<"maxRows", "max-rows", "int64_t", "5", "largest qo_len">,
                 Option<"draws", "draws", "int64_t", "60", "sets of parameter values">];
}

#endif
