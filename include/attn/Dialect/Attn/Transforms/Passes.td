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

#endif
