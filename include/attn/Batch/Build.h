//===- Build.h - tensors and tables of a batch ------------------*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From a batch file and what the IR says (heads, head dims, types, format) to
// memory: q, k, v in their storage types, page tables, parameters; and the same
// data as a problem for the reference. Everything follows from the seed, and a
// value does not depend on where its page lies.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_BATCH_BUILD_H
#define ATTN_BATCH_BUILD_H

#include "attn/Batch/Batch.h"
#include "attn/Reference/Reference.h"

#include <memory>

namespace attn {
namespace batch {

/// What the IR fixes.
struct Geometry {
  int64_t headsQo = 1, headsKv = 1, headDimQk = 0, headDimVo = 0;
  ref::Storage typeQ = ref::Storage::F32, typeKv = ref::Storage::F32, typeO = ref::Storage::F32;
  ref::Format format = ref::Format::Ragged;
  int64_t pageSize = 0;
  int64_t rowBlock = 0; ///< bsr
  int64_t levels = 1;   ///< kv_indptr operands
  ref::Normalizer normalizer = ref::Normalizer::Softmax;
  ref::LseBase lseBase = ref::LseBase::Natural;
};

/// Memory with a shape; strides in elements. Views of one buffer share `bytes`.
struct Tensor {
  ref::Storage type = ref::Storage::F32;
  std::vector<int64_t> shape, strides;
  int64_t offset = 0; ///< elements
  std::shared_ptr<std::vector<uint8_t>> bytes;
  void *data() const { return bytes->data() + offset * int64_t(ref::storageBytes(type)); }
  /// Elements of the whole buffer.
  int64_t bufferElements() const { return int64_t(bytes->size() / ref::storageBytes(type)); }
};

/// Element types of parameter buffers, by the manifest's names: f32 bf16 f16 i64 i32 i8 (and i1 as bytes).
struct ParamDecl {
  enum class Kind { F32, Index, Buffer };
  std::string name;
  Kind kind = Kind::F32;
  std::string element;        ///< of a buffer
  std::vector<int64_t> shape; ///< of a buffer; -1: from the batch file
};

struct ParamValue {
  double number = 0;          ///< f32 (already rounded) or index
  std::vector<int64_t> shape; ///< of a buffer
  std::vector<double> values; ///< rounded to the element type, row-major
  std::vector<uint8_t> bytes; ///< the same in memory
};

struct Built {
  Geometry geometry;
  Tensor q, k, v, o; ///< k and v: [token, head, d] or [page, row, head, d]; o is poisoned
  Tensor lse;        ///< [token, head] f32, poisoned
  std::vector<int64_t> qoIndptr;
  std::vector<ref::Level> levels; ///< geometry.levels of them
  std::vector<int64_t> kvTotal;   ///< bsr only
  std::vector<Request> requests;
  int64_t pages = 0; ///< in the pool, unowned ones included

  /// The same data for the reference. The floats are made by the first call and live as long as this object.
  ref::Problem problem() const;

private:
  mutable std::shared_ptr<std::vector<float>> floatQ, floatKv, floatV;
};

/// Builds tensors and tables. False and `error` when the batch does not fit the geometry.
bool build(const Batch &batch, const Geometry &geometry, Built &built, std::string &error);

/// The value of a declared parameter. False and `error` when the batch file has none or it does not fit.
bool resolveParam(const Batch &batch, const Built &built, const ParamDecl &decl, ParamValue &value, std::string &error);
/// Parameters of the file that the variant does not have: the error, or empty.
std::string unknownParams(const Batch &batch, const std::vector<ParamDecl> &decls, const std::string &variant);

/// Integers as an int32 or int64 array.
std::vector<uint8_t> indexBytes(const std::vector<int64_t> &values, int bits);

/// Bytes of memory that this process can have at most.
double memoryLimit();

/// Counter-based random numbers: the same (seed, stream, index) gives the same value everywhere.
uint64_t randomBits(uint64_t seed, uint64_t stream, uint64_t index);
double randomUniform(uint64_t seed, uint64_t stream, uint64_t index);
/// Nearly normal, variance 1, within ±3.5; only integer arithmetic and one product, so the same on every machine.
double randomNormal(uint64_t seed, uint64_t stream, uint64_t index);

} // namespace batch
} // namespace attn

#endif
