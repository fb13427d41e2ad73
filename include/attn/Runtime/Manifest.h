//===- Manifest.h - what a bundle says of its kernels -----------*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The manifest of ABI.h as C++ structs. parseManifest checks everything, so
// the rest of the runtime may rely on it.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_RUNTIME_MANIFEST_H
#define ATTN_RUNTIME_MANIFEST_H

#include "attn/ABI/ABI.h"
#include "attn/Runtime/Status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attnrt {

/// The same numbers as AttnRtElement of the C API.
enum class Element : int { F32 = 0, BF16 = 1, F16 = 2, E4M3 = 3, E5M2 = 4, I8 = 5, I32 = 6, I64 = 7 };
ATTNRT_API int elementBytes(Element element);
ATTNRT_API const char *elementName(Element element);

enum class Format : int { Ragged, Paged, Bsr };
enum class Lse : int { Natural, Base2, None };

/// What a word or a tensor map refers to.
enum class OperandKind : int {
  Q,
  K,
  V,
  O,
  Lse,
  Pages,
  PartO,
  PartLse,
  Items,
  CtaIndptr,
  Counter,
  Tokens,
  Pieces,
  Param
};
struct OperandRef {
  OperandKind kind = OperandKind::Q;
  int param = -1; ///< number of the buffer parameter, for Param
};

struct WordDesc {
  enum Kind { Pointer, Stride, Size, Param, Scale } kind = Pointer;
  OperandRef operand; ///< Pointer, Stride, Size
  int dim = 0;        ///< Stride, Size
  int param = -1;     ///< Param
};

/// One dimension of a tensor map. A negative `sizeDim` or `strideDim` means that the constant holds.
struct MapDim {
  int64_t extent = 0;
  int sizeDim = -1;
  int64_t strideBytes = 0;
  int strideDim = -1;
};

struct MapDesc {
  OperandRef operand;
  Element element = Element::BF16;
  std::vector<MapDim> dims;
  std::vector<uint32_t> box;
  int swizzle = 0;
  int promotion = 0;
};

struct KernelDesc {
  std::string symbol;
  int blob = 0;
  int rows = 0;
  int pack = 1;
  int keys = 1;
  bool rowTable = false;
  int threads = 1;
  int64_t smem = 0;
  int ctasPerSm = 1;
  bool counter = false; ///< a word refers to "counter": the kernel takes items from one shared list
  bool scans = false;   ///< skips keys by the range program's scans
  std::vector<WordDesc> words;
  std::vector<MapDesc> maps;

  int tokensPerTile() const { return rows / pack; }
};

struct ParamDesc {
  enum Kind { F32, Index, Buffer } kind = F32;
  std::string name;
  Element element = Element::F32; ///< Buffer
  int rank = 0;                   ///< Buffer
};

struct BlobDesc {
  enum Kind { Cubin, Ptx, So } kind = So;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

/// The mask analysis as a small program; see ABI.h. Only lo and hi matter to the planner, so what the manifest says of
/// other results (an interior, a scan's `all`) is checked and left out.
struct RangeProgram {
  /// Whole: a scan that reads nothing, as if every entry met `some` and none met `all`.
  enum Op : uint8_t { Const, Add, Sub, Mul, Div, Min, Max, Load, Extent, Scan, Whole };
  struct Instruction {
    Op op = Const;
    int dst = 0;
    int64_t a = 0;              ///< Const: the value; Load, Extent, Scan: number of the parameter
    int64_t b = 0;              ///< Scan: register of the base
    int from = 0, to = 0;       ///< Extent, Scan, Whole
    int someLo = 0, someHi = 0; ///< Scan
    bool outside = false;       ///< Scan: `some` is met outside of the interval
  };
  /// The instructions that lo and hi depend on.
  struct Slice {
    std::vector<Instruction> code;
    bool readsParams = false; ///< lo or hi depend on the variant's parameters
  };
  int registers = 0;
  std::vector<Instruction> code;
  int result[4] = {0, 0, 0, 0};
  Slice slices[2]; ///< of kernels that skip keys by scans ([1]) and of others, for which scans are Whole

  /// Fills `slices` from the rest; `params` is how many the variant has.
  ATTNRT_API void slice(size_t params);
};

struct Manifest {
  std::string name;
  std::string target;
  int headsQo = 0;
  int headsKv = 0;
  int headDimQk = 0;
  int headDimVo = 0;
  Element typeQ = Element::F32;
  Element typeKv = Element::F32;
  Element typeO = Element::F32;
  Format format = Format::Ragged;
  int pageSize = 0;
  int rowBlock = 0;
  int indexBits = 32;
  int levels = 1;
  bool softmax = true;
  Lse lse = Lse::Natural;
  bool causalRows = false;
  std::vector<ParamDesc> params;
  std::vector<KernelDesc> kernels;
  std::optional<KernelDesc> merge;
  std::optional<RangeProgram> range;
  std::vector<BlobDesc> blobs;

  bool onHost() const { return target == "host"; }
};

/// Parses and checks a manifest. `blobBytes` is the size of all blobs.
ATTNRT_API Status parseManifest(std::string_view json, uint64_t blobBytes, Manifest &manifest);

} // namespace attnrt

#endif // ATTN_RUNTIME_MANIFEST_H
