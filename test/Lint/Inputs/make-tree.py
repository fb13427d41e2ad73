# ===- make-tree.py - files that break one rule each ------------------------===//
#
# Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===------------------------------------------------------------------------===//
"""Writes the tree that lint.test checks into the folder given."""

import pathlib
import sys

root = pathlib.Path(sys.argv[1])


def source(path, body):
    name = path.rsplit("/", 1)[1]
    head = f"//===- {name} - a file ---===//\n//\n// Part.\n"
    head += "// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception\n//\n//===---===//\n\n"
    (root / path).write_text(head + body)


source("lib/Dialect/Good.cpp", "int good();\n")
source("lib/Dialect/Ugly.cpp", "int   ugly( );\n")
source("lib/Runtime/Good.cpp", '#include "attn/Runtime/Plan.h"\n')
source("include/attn/ABI/Wall.h", "#include <llvm/Support/JSON.h>\n")
source("lib/Runtime/Wall.cpp", '#  include "mlir/IR/Builders.h"\n')
source("lib/Dialect/Runtime.cpp", '#include "attn/Runtime/Plan.h"\n')
source("lib/Dialect/Option.cpp", 'static llvm::cl::opt<int> level("level");\n')
source("lib/Dialect/Long.cpp", "int x;\n" * 800)
(root / "lib/Dialect/Bare.cpp").write_text("int bare();\n")
source("lib/Dialect/Blank.cpp", "int x; \n<<<<<<< left\nint y;")
(root / "test/Area/Under_score.mlir").write_text("// RUN: true\n")
(root / "test/Area/good-name.mlir").write_text("// RUN: true\n")
(root / "test/Inputs/Any_name.mlir").write_text("// an input   \n")
