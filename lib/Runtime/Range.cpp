//===- Range.cpp - the mask analysis on the host --------------------------===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Cuts the manifest's range program down to what the planner needs of it, once
// a bundle, and interprets that for every tile.
//
//===----------------------------------------------------------------------===//

#include "attn/Runtime/Range.h"

#include <algorithm>
#include <climits>

using namespace attnrt;

void RangeProgram::slice(size_t params) {
  for (int scans = 0; scans < 2; ++scans) {
    Slice &slice = slices[scans];
    slice = Slice();
    // From the end to the start: registers that are still needed, and what writes them.
    std::vector<bool> live(registers);
    live[result[0]] = live[result[3]] = true;
    for (size_t i = code.size(); i-- > 0;) {
      Instruction inst = code[i];
      int results = inst.op == Scan ? 4 : inst.op == Extent ? 2 : 1;
      bool wanted = false;
      for (int r = inst.dst; r < inst.dst + results; ++r)
        wanted |= live[r];
      if (!wanted)
        continue;
      // The planner takes a scan's `all` for not met, whatever the table says.
      if (inst.op == Scan && !(scans && (live[inst.dst] || live[inst.dst + 1])))
        inst.op = Whole;
      for (int r = inst.dst; r < inst.dst + results; ++r)
        live[r] = false;
      switch (inst.op) {
      case Const:
        break;
      case Scan:
        live[inst.b] = live[inst.someLo] = live[inst.someHi] = true;
        [[fallthrough]];
      case Extent:
      case Whole:
        live[inst.from] = live[inst.to] = true;
        slice.readsParams |= inst.op != Whole;
        break;
      case Load:
        live[inst.b] = true;
        slice.readsParams = true;
        break;
      default:
        live[inst.a] = live[inst.b] = true;
      }
      slice.code.push_back(inst);
    }
    std::reverse(slice.code.begin(), slice.code.end());
    for (size_t p = 0; p < params; ++p)
      slice.readsParams |= live[5 + p];
  }
}

void RangeInterpreter::begin(const Manifest &newManifest, const std::vector<ParamValue> &newParams) {
  manifest = &newManifest;
  params = &newParams;
  tables.resize(params->size());
  for (size_t i = 0; i < params->size(); ++i) {
    const ParamValue &value = (*params)[i];
    tables[i].reset(manifest->params[i].element, value.host, value.hostSize);
  }
}

/// Element `index` of a buffer parameter's host copy.
bool RangeInterpreter::load(int64_t param, int64_t index, int64_t &result) {
  TableSummary &table = tables[param];
  if (index < 0 || index >= table.size() || manifest->params[param].element < Element::I8)
    return false;
  result = table.extent(index, index + 1).least;
  return true;
}

bool RangeInterpreter::run(const RangeInputs &inputs, bool scans, int64_t &lo, int64_t &hi) {
  const RangeProgram &program = *manifest->range;
  auto attempt = [&](const RangeProgram::Slice &slice) {
    return (!params->empty() || !slice.readsParams) && run(slice, inputs, lo, hi);
  };
  // Where a table cannot be read, what the rest of the mask says still holds.
  return (scans && attempt(program.slices[1])) || attempt(program.slices[0]);
}

bool RangeInterpreter::run(const RangeProgram::Slice &slice, const RangeInputs &inputs, int64_t &lo, int64_t &hi) {
  const RangeProgram &program = *manifest->range;
  registers.assign(program.registers, 0);
  int64_t *r = registers.data();
  r[0] = inputs.qpos0, r[1] = inputs.rows, r[2] = inputs.qoLen, r[3] = inputs.kvTotal, r[4] = inputs.request;
  for (size_t i = 0; i < params->size(); ++i)
    if (manifest->params[i].kind == ParamDesc::Index)
      r[5 + i] = (*params)[i].index;
  for (const RangeProgram::Instruction &inst : slice.code) {
    // Unsigned arithmetic: a program that overflows gives a useless range, not undefined behaviour.
    auto u = [&](int64_t reg) { return static_cast<uint64_t>(r[reg]); };
    int64_t &dst = r[inst.dst];
    switch (inst.op) {
    case RangeProgram::Const:
      dst = inst.a;
      break;
    case RangeProgram::Add:
      dst = static_cast<int64_t>(u(inst.a) + u(inst.b));
      break;
    case RangeProgram::Sub:
      dst = static_cast<int64_t>(u(inst.a) - u(inst.b));
      break;
    case RangeProgram::Mul:
      dst = static_cast<int64_t>(u(inst.a) * u(inst.b));
      break;
    case RangeProgram::Div: {
      int64_t a = r[inst.a], b = r[inst.b];
      if (b == 0 || (b == -1 && a == INT64_MIN))
        return false;
      dst = a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
      break;
    }
    case RangeProgram::Min:
      dst = std::min(r[inst.a], r[inst.b]);
      break;
    case RangeProgram::Max:
      dst = std::max(r[inst.a], r[inst.b]);
      break;
    case RangeProgram::Load:
      if (!load(inst.a, r[inst.b], dst))
        return false;
      break;
    case RangeProgram::Extent: {
      int64_t from = r[inst.from], to = r[inst.to];
      TableSummary::Bounds bounds;
      if (from < to) {
        if (from < 0 || to > tables[inst.a].size())
          return false;
        bounds = tables[inst.a].extent(from, to);
      }
      (&dst)[0] = bounds.least;
      (&dst)[1] = bounds.greatest;
      break;
    }
    case RangeProgram::Scan: {
      const int64_t base = r[inst.b], from = r[inst.from], to = r[inst.to];
      const TableSummary::Condition some{r[inst.someLo], r[inst.someHi], inst.outside};
      int64_t begin, end;
      bool found = false;
      if (from < to) {
        if (__builtin_add_overflow(base, from, &begin) || __builtin_add_overflow(base, to, &end) || begin < 0 ||
            end > tables[inst.a].size())
          return false;
        found = tables[inst.a].find(begin, end, some, begin, end);
      }
      (&dst)[0] = found ? begin - base : std::max(from, to);
      (&dst)[1] = found ? end - base : from;
      (&dst)[2] = std::max(from, to);
      (&dst)[3] = from;
      break;
    }
    case RangeProgram::Whole: {
      const int64_t from = r[inst.from], to = r[inst.to];
      (&dst)[0] = from;
      (&dst)[1] = (&dst)[2] = std::max(from, to);
      (&dst)[3] = from;
      break;
    }
    }
  }
  lo = r[program.result[0]];
  hi = r[program.result[3]];
  return true;
}
