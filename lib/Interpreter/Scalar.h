//===- Scalar.h - scalar code of kernels, compiled to slots -*- C++ -*- ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Bodies of map and mask run once an element, so their ops are decoded once:
// a Code is a list of instructions over a frame of words.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_INTERPRETER_SCALAR_H
#define ATTN_LIB_INTERPRETER_SCALAR_H

#include "attn/Interpreter/Interpreter.h"
#include "attn/ScalarOps/ScalarOps.h"
#include <memory>
#include <string>

namespace mlir::tile::interp {

/// The first thing that went wrong.
struct Failure {
  Location loc;
  std::string message;
};

class Code;

/// One decoded op. `kind` is a number of the table in Scalar.cpp.
struct Instr {
  Operation *op;
  int kind;
  SmallVector<int, 4> in;
  SmallVector<int, 2> out;
  Type from, to; // types of the first operand and the first result
  ::attn::IntegerFn integer = nullptr;
  ::attn::FloatFn real = nullptr;
  ::attn::CompareFn compare = nullptr;
  int64_t frameSize = 0; // of the callee
  Word constant = {};
  SmallVector<std::unique_ptr<Code>, 2> regions;
  Code *callee = nullptr;
};

/// A block with its nested blocks. All values of the body have a slot of the same frame.
class Code {
public:
  SmallVector<int> args;
  SmallVector<Instr, 0> instrs;
  SmallVector<int> results; // operands of the terminator
};

/// What a body needs to run: its code, the frame's size, and the values that it captures.
struct Body {
  Code code;
  int frame = 0;
  SmallVector<std::pair<Value, int>> captures;
};

class Compiler {
public:
  /// The body of a map, a mask or a function; null after a failure.
  Body *get(Block &block, std::optional<Failure> &failure);

private:
  bool build(Block &block, Code &code, Body &body, DenseMap<Value, int> &slots, Region *top,
             std::optional<Failure> &failure);
  DenseMap<Block *, std::unique_ptr<Body>> bodies;
};

/// Decodes an op, without its operands and regions; `kind` is below 0 when it is not known.
void decode(Operation *op, Instr &instr);
/// Runs a decoded op on a frame; false after a failure.
bool runInstr(const Instr &instr, MutableArrayRef<Word> frame, std::optional<Failure> &failure, int64_t &steps);
bool runCode(const Code &code, MutableArrayRef<Word> frame, std::optional<Failure> &failure, int64_t &steps);

} // namespace mlir::tile::interp

#endif
