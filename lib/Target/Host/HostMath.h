//===- HostMath.h - math without libm ---------------------------*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_TARGET_HOST_HOSTMATH_H
#define ATTN_LIB_TARGET_HOST_HOSTMATH_H

#include "mlir/Pass/Pass.h"
#include <memory>

namespace attn {
/// math.* on f32 and vectors of f32 as arithmetic; sqrt, fma and what else is an instruction stays.
std::unique_ptr<mlir::Pass> createHostMathPass();
} // namespace attn

#endif
