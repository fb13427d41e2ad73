//===- TileAttrs.td - levels, layouts, kinds ---------------*- tablegen -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TILE_ATTRS
#define ATTN_TILE_ATTRS

include "attn/Dialect/Tile/IR/TileBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

class Tile_Attr<string name, string mnemonic_> : AttrDef<Tile_Dialect, name> {
  let mnemonic = mnemonic_;
}

def Tile_Level : I32EnumAttr<"Level", "level of a tile kernel", [
  I32EnumAttrCase<"Logical", 0, "logical">,
  I32EnumAttrCase<"Pipelined", 1, "pipelined">,
  I32EnumAttrCase<"Specialized", 2, "specialized">
]> {
  let cppNamespace = "::mlir::tile";
  let genSpecializedAttr = 0;
}
def Tile_LevelAttr : EnumAttr<Tile_Dialect, Tile_Level, "level"> {
  let assemblyFormat = "`<` $value `>`";
}

def Tile_ReduceKind : I32EnumAttr<"ReduceKind", "combination of a reduction", [
  I32EnumAttrCase<"AddF", 0, "addf">,
  I32EnumAttrCase<"MaximumF", 1, "maximumf">
]> {
  let cppNamespace = "::mlir::tile";
}

def Tile_ReduceScope : I32EnumAttr<"ReduceScope", "which holders of a row a reduction combines", [
  I32EnumAttrCase<"All", 0, "all">,
  I32EnumAttrCase<"Thread", 1, "thread">,
  I32EnumAttrCase<"Lanes", 2, "lanes">
]> {
  let cppNamespace = "::mlir::tile";
}

def Tile_OperandKind : I32EnumAttr<"OperandKind", "operand of a matrix product", [
  I32EnumAttrCase<"A", 0, "a">,
  I32EnumAttrCase<"B", 1, "b">,
  I32EnumAttrCase<"BT", 2, "bt">
]> {
  let cppNamespace = "::mlir::tile";
  let genSpecializedAttr = 0;
}

def Tile_MmaAttr : Tile_Attr<"Mma", "mma"> {
  let summary = "accumulator layout of mma.sync m16n8 and of wgmma m64";
  let description = [{
    `warps` has one number per dimension of the tile; the last is 1. Along the
    rows, `warps` warps take 16 rows each and repeat; a leading third dimension
    is spread over warps too. Within 16 rows a thread holds, for register i of
    each 8 columns (i in 0..3): row = lane / 4 + 8 * (i / 2),
    column = 2 * (lane mod 4) + i mod 2 (PTX ISA, mma.m16n8k16, matrix D).
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$warps);
  let assemblyFormat = "`<` `warps` `=` `[` $warps `]` `>`";
}

def Tile_OperandAttr : Tile_Attr<"Operand", "operand"> {
  let summary = "register operand of a matrix product whose accumulator has the parent layout";
  let description = [{
    `a`: m16k16 fragments; for 16-bit types the packed pairs of the accumulator
    layout of the same shape. `b`: k16n8 fragments (mma.sync only) of a tile
    [.., k, n]: a thread holds, for each 16 x 8, k = 2 * (lane mod 4) + i mod 2
    + 8 * (i / 2), n = lane / 4. `bt`: the same fragments of a tile [.., n, k]
    (`transpose_b`). Both are replicated over the warps along the rows.
  }];
  let parameters = (ins EnumParameter<Tile_OperandKind>:$kind, "::mlir::Attribute":$parent);
  let assemblyFormat = "`<` $kind `,` `parent` `=` $parent `>`";
}

def Tile_BlockedAttr : Tile_Attr<"Blocked", "blocked"> {
  let summary = "runs of 8 columns, side by side along a row";
  let description = [{
    The layout of shared memory that is read and written row by row. `columns`
    / 8 lanes hold `columns` columns of a row, 8 each, and repeat along the
    row; the lanes of a warp take `rows` rows at a time (left-over lanes hold
    copies). `warps` as in #tile.mma: along the rows warps have `rows` rows each
    and repeat. In a thread, the 8 columns are innermost, then columns, rows.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$warps, "int64_t":$columns, "int64_t":$rows);
  let assemblyFormat = "`<` `warps` `=` `[` $warps `]` `,` `columns` `=` $columns `,` `rows` `=` $rows `>`";
}

def Tile_SliceAttr : Tile_Attr<"Slice", "slice"> {
  let summary = "the parent layout with one dimension reduced away";
  let description = [{
    One value for each row that the thread holds, replicated over the lanes
    that share the row; with `partial = true` these lanes hold terms of a sum
    that has not been taken yet (only + and multiplication by whole rows mean
    anything there).
  }];
  let parameters = (ins "int64_t":$dim, "::mlir::Attribute":$parent,
                        DefaultValuedParameter<"bool", "false">:$partial);
  let assemblyFormat = "`<` `dim` `=` $dim `,` `parent` `=` $parent (`,` `partial` `=` $partial^)? `>`";
}

def Tile_SwizzleAttr : Tile_Attr<"Swizzle", "swizzle"> {
  let summary = "shared memory in panels whose 16-byte chunks are permuted by row";
  let description = [{
    Columns are cut into panels of `panel` elements; a panel is stored row by
    row, `bytes` bytes a row (bytes = panel * element size: 128, 64 or 32), panel after panel; the last
    one may be wider than the columns that are left. Chunk c of row r stands at c xor (r mod (bytes / 16)) for 128 bytes; 64 and 32 use
    (r / 2) mod 4 and (r / 4) mod 2 (PTX ISA, tensor swizzling modes).
  }];
  let parameters = (ins "int64_t":$bytes, "int64_t":$panel);
  let assemblyFormat = "`<` $bytes `,` `panel` `=` $panel `>`";
}

#endif
