//===- TunedTables.h - the built-in tables of measured configs -*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The files of lib/Target/Tuned, as text.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TARGET_TUNEDTABLES_H
#define ATTN_TARGET_TUNEDTABLES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace attn {

struct TunedTable {
  llvm::StringRef name; // the file's, without .json
  llvm::StringRef text;
};

llvm::ArrayRef<TunedTable> tunedTables();

} // namespace attn

#endif
