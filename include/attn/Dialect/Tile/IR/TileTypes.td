//===- TileTypes.td - registers, shared memory, views, pipelines -*- tablegen -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TILE_TYPES
#define ATTN_TILE_TYPES

include "attn/Dialect/Tile/IR/TileAttrs.td"

class Tile_Type<string name, string mnemonic_> : TypeDef<Tile_Dialect, name> {
  let mnemonic = mnemonic_;
}

def Tile_Reg : Tile_Type<"Reg", "reg"> {
  let summary = "a tile held in the registers of the group that runs the op";
  let description = [{
    An SSA value of rank 1 to 3, spread over CTA, warpgroup or warp by its
    layout; without one it is a whole (level L). The last two dimensions are
    multiples of 8, not powers of two. Example: `!tile.reg<64x128xf32, #acc>`.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType,
                        "::mlir::Attribute":$layout);
  let builders = [
    TypeBuilderWithInferredContext<(ins "::llvm::ArrayRef<int64_t>":$shape, "::mlir::Type":$elementType,
                                        CArg<"::mlir::Attribute", "{}">:$layout), [{
      return $_get(elementType.getContext(), shape, elementType, layout);
    }]>
  ];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getRank() const { return getShape().size(); }
    int64_t getNumElements() const;
    /// The same tile with another layout (null: none).
    RegType withLayout(::mlir::Attribute layout) const { return get(getShape(), getElementType(), layout); }
    RegType withElementType(::mlir::Type type) const { return get(getShape(), type, getLayout()); }
  }];
}

def Tile_Smem : Tile_Type<"Smem", "smem"> {
  let summary = "one stage of shared memory";
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType,
                        "::mlir::Attribute":$layout);
  let builders = [
    TypeBuilderWithInferredContext<(ins "::llvm::ArrayRef<int64_t>":$shape, "::mlir::Type":$elementType,
                                        CArg<"::mlir::Attribute", "{}">:$layout), [{
      return $_get(elementType.getContext(), shape, elementType, layout);
    }]>
  ];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getRank() const { return getShape().size(); }
    int64_t getNumElements() const;
    /// Bytes of the stage (no padding: layouts only permute).
    int64_t getBytes() const;
    SmemType withLayout(::mlir::Attribute layout) const { return get(getShape(), getElementType(), layout); }
  }];
}

def Tile_View : Tile_Type<"View", "view"> {
  let summary = "rows in global memory";
  let description = [{
    A run-time number of rows (`?`) or a fixed one, each of a fixed number of
    contiguous elements, or a single element when rank 1. `paged<P>`: row r is
    row r mod P of the page that the table names at r / P. `packed<G>`: row r is
    row r / G of head r mod G (GQA groups packed into rows).
    Example: `!tile.view<?x128xbf16, paged<16>>`.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType,
                        "int64_t":$page, "int64_t":$pack);
  let builders = [
    TypeBuilderWithInferredContext<(ins "::llvm::ArrayRef<int64_t>":$shape, "::mlir::Type":$elementType,
                                        CArg<"int64_t", "0">:$page, CArg<"int64_t", "0">:$pack), [{
      return $_get(elementType.getContext(), shape, elementType, page, pack);
    }]>
  ];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getRank() const { return getShape().size(); }
    bool isPaged() const { return getPage() != 0; }
    bool isPacked() const { return getPack() != 0; }
  }];
}

def Tile_Pipeline : Tile_Type<"Pipeline", "pipeline"> {
  let summary = "N stages of shared memory with their full and empty signals";
  let description = [{
    `!tile.pipeline<2 x !tile.smem<128x128xbf16>>`, optionally `, words = 4`:
    small integers that travel with each stage (`tile.send`, results of
    `tile.consumer_wait`).
  }];
  let parameters = (ins "int64_t":$stages, "::mlir::tile::SmemType":$slot, "int64_t":$words);
  let builders = [
    TypeBuilderWithInferredContext<(ins "int64_t":$stages, "::mlir::tile::SmemType":$slot,
                                        CArg<"int64_t", "0">:$words), [{
      return $_get(slot.getContext(), stages, slot, words);
    }]>
  ];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Tile_Pending : Tile_Type<"Pending", "pending"> {
  let summary = "accumulator in flight: only `tile.await` or a further `tile.dot_async` may use it";
  let parameters = (ins "::mlir::tile::RegType":$reg);
  let builders = [
    TypeBuilderWithInferredContext<(ins "::mlir::tile::RegType":$reg), [{ return $_get(reg.getContext(), reg); }]>
  ];
  let assemblyFormat = "`<` $reg `>`";
}

def Tile_Items : Tile_Type<"Items", "items"> {
  let summary = "the work list of this launch: AttnWorkItem records and one range of them per CTA";
}

#endif
