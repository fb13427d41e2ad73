//===- Range.cpp - the mask analysis on the host --------------------------===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Interprets the manifest's range program to know which keys a tile can see.
// The result only balances the plan: kernels decide again for themselves.
//
//===----------------------------------------------------------------------===//

#include "PlanImpl.h"

#include <algorithm>
#include <climits>

using namespace attnrt;

/// Element `index` of a buffer parameter's host copy.
static bool loadElement(const ParamDesc &desc, const ParamValue &value, int64_t index, int64_t &result) {
  if (!value.host || index < 0 || index >= value.hostSize)
    return false;
  switch (desc.element) {
  case Element::I8:
    result = static_cast<const int8_t *>(value.host)[index];
    return true;
  case Element::I32:
    result = static_cast<const int32_t *>(value.host)[index];
    return true;
  case Element::I64:
    result = static_cast<const int64_t *>(value.host)[index];
    return true;
  default:
    return false;
  }
}

/// Whether the range depends on the variant's parameters, which a plan may be made without.
static bool readsParams(const RangeProgram &program, size_t params) {
  auto isParam = [&](int64_t reg) { return reg >= 5 && reg < 5 + static_cast<int64_t>(params); };
  for (const RangeProgram::Instruction &inst : program.code)
    if (inst.op == RangeProgram::Load || (inst.op != RangeProgram::Const && (isParam(inst.a) || isParam(inst.b))))
      return true;
  return isParam(program.result[0]) || isParam(program.result[3]);
}

bool PlanImpl::visibleRange(int64_t qpos0, int64_t rows, int64_t qoLen, int64_t kvTotal, int64_t request, int64_t &lo,
                            int64_t &hi) {
  const Manifest &m = manifest();
  if (m.range && (!input->params.empty() || !readsParams(*m.range, m.params.size()))) {
    const RangeProgram &program = *m.range;
    registers.assign(program.registers, 0);
    int64_t *r = registers.data();
    r[0] = qpos0, r[1] = rows, r[2] = qoLen, r[3] = kvTotal, r[4] = request;
    for (size_t i = 0; i < m.params.size(); ++i)
      if (m.params[i].kind == ParamDesc::Index && !input->params.empty())
        r[5 + i] = input->params[i].index;
    bool complete = true;
    for (const RangeProgram::Instruction &inst : program.code) {
      // Unsigned arithmetic: a program that overflows gives a useless range, not undefined behaviour.
      auto u = [&](int64_t reg) { return static_cast<uint64_t>(r[reg]); };
      int64_t value = 0;
      switch (inst.op) {
      case RangeProgram::Const:
        value = inst.a;
        break;
      case RangeProgram::Add:
        value = static_cast<int64_t>(u(inst.a) + u(inst.b));
        break;
      case RangeProgram::Sub:
        value = static_cast<int64_t>(u(inst.a) - u(inst.b));
        break;
      case RangeProgram::Mul:
        value = static_cast<int64_t>(u(inst.a) * u(inst.b));
        break;
      case RangeProgram::Div: {
        int64_t a = r[inst.a], b = r[inst.b];
        if (b == 0 || (b == -1 && a == INT64_MIN)) {
          complete = false;
          break;
        }
        value = a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
        break;
      }
      case RangeProgram::Min:
        value = std::min(r[inst.a], r[inst.b]);
        break;
      case RangeProgram::Max:
        value = std::max(r[inst.a], r[inst.b]);
        break;
      case RangeProgram::Load:
        complete = loadElement(m.params[inst.a], input->params[inst.a], r[inst.b], value);
        break;
      }
      if (!complete)
        break;
      r[inst.dst] = value;
    }
    if (complete) {
      lo = r[program.result[0]];
      hi = r[program.result[3]];
      return true;
    }
  }
  bool causal = options.causal == Hint::FromBundle ? m.causalRows : options.causal == Hint::On;
  if (causal) {
    lo = 0;
    hi = qpos0 + rows;
    return true;
  }
  return false;
}
