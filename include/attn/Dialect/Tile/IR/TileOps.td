//===- TileOps.td - the tile operations --------------------*- tablegen -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TILE_OPS
#define ATTN_TILE_OPS

include "attn/Dialect/Tile/IR/TileTypes.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Tile_Op<string mnemonic, list<Trait> traits = []> : Op<Tile_Dialect, mnemonic, traits>;

def Tile_RegOrSmem : AnyTypeOf<[Tile_Reg, Tile_Smem]>;
def Tile_RegOrPending : AnyTypeOf<[Tile_Reg, Tile_Pending]>;

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

def Tile_KernelOp : Tile_Op<"kernel", [IsolatedFromAbove, FunctionOpInterface, Symbol, AutomaticAllocationScope]> {
  let summary = "one kernel: a function of memrefs, scalars and the work list";
  let description = [{
    `level` says which ops may appear (verified). `config` (#attn.config) and
    `target` (#attn.target) are carried along. Arguments have a `tile.arg`
    string attribute that names their role in the ABI (include/attn/ABI/ABI.h):
    "q", "k", "v", "o", "lse", "pages", "part_o", "part_lse", "items", "tokens",
    "pieces", "scale", or "param:NAME".
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type,
                       OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs,
                       Tile_LevelAttr:$level);
  let regions = (region AnyRegion:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::FunctionType":$type, "::mlir::tile::Level":$level)>];
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
    /// Role of argument `i` in the ABI, or "".
    ::llvm::StringRef getArgRole(unsigned i);
  }];
}

def Tile_ReturnOp : Tile_Op<"return", [Pure, Terminator, HasParent<"KernelOp">]> {
  let summary = "end of a kernel";
  let assemblyFormat = "attr-dict";
}

def Tile_YieldOp : Tile_Op<"yield", [Pure, ReturnLike, Terminator]> {
  let summary = "results of a region of a tile op";
  let arguments = (ins Variadic<AnyType>:$operands);
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, ::mlir::ValueRange()); }]>];
  let assemblyFormat = "attr-dict ($operands^ `:` type($operands))?";
}

def Tile_ForEachOp : Tile_Op<"for_each", [SingleBlockImplicitTerminator<"YieldOp">, RecursiveMemoryEffects]> {
  let summary = "this CTA's items in order";
  let description = [{
    `tile.for_each (%r0 = token0, %n = rows) in %items { ... }`: each named
    field of AttnWorkItem (ABI.h) becomes an index argument. Also `level`-free:
    CTAs run in parallel, the items of one CTA in order.
  }];
  let arguments = (ins Tile_Items:$items, StrArrayAttr:$fields);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$items, "::llvm::ArrayRef<::llvm::StringRef>":$fields)>];
}

def Tile_NextItemOp : Tile_Op<"next_item"> {
  let summary = "the next item of this CTA's list (level S: for_each made explicit)";
  let description = [{
    `%some, %a, %b = tile.next_item %items (token0, rows)`. The k-th call of a
    role yields the k-th item; `%some` is false past the end, the fields then 0.
  }];
  let arguments = (ins Tile_Items:$items, StrArrayAttr:$fields);
  let results = (outs I1:$some, Variadic<Index>:$values);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Tile_RolesOp : Tile_Op<"roles", [NoTerminator, SingleBlock, RecursiveMemoryEffects]> {
  let summary = "warps with programs of their own, running side by side";
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "attr-dict-with-keyword $body";
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Tile_RoleOp : Tile_Op<"role", [SingleBlockImplicitTerminator<"YieldOp">, HasParent<"RolesOp">, RecursiveMemoryEffects]> {
  let summary = "one role: `tile.role @consumer warps(4) groups(2) registers(240) (%wg) { ... }`";
  let description = [{
    The role has `groups` groups of `warps` warps; the body is the program of
    one group, `%wg` its number (an index, present when groups > 1). Bodies
    capture uniform scalars, memrefs and pipelines only (R7). `registers` is
    the budget a thread asks for (setmaxnreg).
  }];
  let arguments = (ins StrAttr:$name, I64Attr:$warps, DefaultValuedAttr<I64Attr, "1">:$groups,
                       OptionalAttr<I64Attr>:$registers);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Global memory
//===----------------------------------------------------------------------===//

def Tile_ViewOp : Tile_Op<"view", [Pure, AttrSizedOperandSegments]> {
  let summary = "rows of a buffer";
  let description = [{
    Plain: dimension 0 of the memref is the row, then heads, then (for views of
    rank 2) the contiguous vector. The offsets are for the leading dimensions:
    first row, head. `rows` is the number of rows that exist; without it all
    rows that are accessed do. `packed<G>`: row r is (offset0 + r / G, offset1 + r mod G).
    `paged<P>`: the memref is (page, row in page, head, vector); the offset is
    the head; row r lives in page `pages[first + r / P]`.
    ```
    %qv = tile.view %q[%row0, %head] rows(%n) : memref<...> -> !tile.view<?x128xbf16>
    %kv = tile.view %k[%kvh] rows(%len) pages(%table[%first] : memref<?xi32>) : memref<...> -> !tile.view<?x128xbf16, paged<16>>
    ```
  }];
  let arguments = (ins AnyMemRef:$source, Variadic<Index>:$offsets, Optional<Index>:$rows,
                       Optional<AnyMemRef>:$pages, Optional<Index>:$first);
  let results = (outs Tile_View:$result);
  let assemblyFormat = [{
    $source `[` $offsets `]` (`rows` `(` $rows^ `)`)? (`pages` `(` $pages^ `[` $first `]` `:` type($pages) `)`)?
    attr-dict `:` type($source) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_ExtentOp : Tile_Op<"extent", [MemoryEffects<[MemRead]>]> {
  let summary = "the least and the greatest of the entries [from, to) of a table; 0 when there is none";
  let description = [{
    ```
    %least, %most = tile.extent %doc[%first to %end] : memref<?xi32>
    ```
  }];
  let arguments = (ins AnyMemRef:$table, Index:$from, Index:$to);
  let results = (outs I64:$least, I64:$most);
  let assemblyFormat = "$table `[` $from `to` $to `]` attr-dict `:` type($table)";
  let hasVerifier = 1;
}

def Tile_ScanOp : Tile_Op<"scan", [MemoryEffects<[MemRead]>]> {
  let summary = "which of the numbers from `from` to `to` have entries of a table in an interval";
  let description = [{
    Of the numbers i in [from, to), by the entries table[base + i]: `first` is
    the least that meets `some`, `last` is behind the greatest; `all_first` and
    `all_last` are the same of `all` when every number between meets it. None:
    the first of the two is no less than the second. A condition is to lie in
    [lo, hi], ends included, or outside. An implementation that looks at several
    entries together may let `some` grow and `all` shrink by less than four
    numbers at either end. The threads of a warp share the work.
    ```
    %first, %last, %f, %l = tile.scan %doc[%base] from %lo to %hi some(%a, %b) all outside(%c, %d) : memref<?xi32>
    ```
  }];
  let arguments = (ins AnyMemRef:$table, Index:$base, Index:$from, Index:$to, I64:$some_lo, I64:$some_hi,
                       I64:$all_lo, I64:$all_hi, UnitAttr:$some_outside, UnitAttr:$all_outside);
  let results = (outs Index:$first, Index:$last, Index:$all_first, Index:$all_last);
  let assemblyFormat = [{
    $table `[` $base `]` `from` $from `to` $to `some` (`outside` $some_outside^)? `(` $some_lo `,` $some_hi `)`
    `all` (`outside` $all_outside^)? `(` $all_lo `,` $all_hi `)` attr-dict `:` type($table)
  }];
  let hasVerifier = 1;
}

def Tile_LoadOp : Tile_Op<"load", [MemoryEffects<[MemRead]>]> {
  let summary = "rows from `row` on into shared memory or registers; rows past the view's end read as zero";
  let arguments = (ins Tile_View:$view, Index:$row);
  let results = (outs Tile_RegOrSmem:$result);
  let assemblyFormat = "$view `[` $row `]` attr-dict `:` type($view) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_StoreOp : Tile_Op<"store", [MemoryEffects<[MemWrite]>]> {
  let summary = "writes rows; rows past the view's end are not written";
  let arguments = (ins Tile_RegOrSmem:$value, Tile_View:$view, Index:$row);
  let assemblyFormat = "$value `,` $view `[` $row `]` attr-dict `:` type($value) `,` type($view)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

def Tile_LocalLoadOp : Tile_Op<"local_load", [MemoryEffects<[MemRead]>]> {
  let summary = "shared memory to registers";
  let arguments = (ins Tile_Smem:$source);
  let results = (outs Tile_Reg:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_LocalStoreOp : Tile_Op<"local_store", [MemoryEffects<[MemWrite]>]> {
  let summary = "registers to shared memory";
  let arguments = (ins Tile_Reg:$value, Tile_Smem:$dest);
  let assemblyFormat = "$value `,` $dest attr-dict `:` type($value) `,` type($dest)";
  let hasVerifier = 1;
}

def Tile_SubviewOp : Tile_Op<"subview", [Pure]> {
  let summary = "a part of a stage, of static shape";
  let arguments = (ins Tile_Smem:$source, Variadic<Index>:$offsets, DenseI64ArrayAttr:$static_offsets);
  let results = (outs Tile_Smem:$result);
  let assemblyFormat = [{
    $source custom<DynamicIndexList>($offsets, $static_offsets) attr-dict `:` type($source) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_FillRowsOp : Tile_Op<"fill_rows", [MemoryEffects<[MemWrite]>]> {
  let summary = "zeroes the rows of a stage from `first` on";
  let arguments = (ins Tile_Smem:$dest, Index:$first);
  let assemblyFormat = "$dest `from` $first attr-dict `:` type($dest)";
  let hasVerifier = 1;
}

def Tile_TransformOp : Tile_Op<"transform", [SingleBlock, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "computes a stage anew, a few rows at a time";
  let description = [{
    For each block of `rows` rows (of every group, when the stage has a leading
    dimension of groups) the body gets the block in registers and the number of
    its first row, and yields what takes its place. The result of the source's
    own type stands in the source's memory, which nobody may read as it was any
    more; a result of another type has memory of its own, in roles the slot
    `into`. The threads of the group that runs the op share the work, and all of
    them see the result.
    ```
    %h = tile.transform %k rows 16 : !stage -> !stage {
    ^bb0(%x: !tile.reg<16x128xbf16>, %first: index):
      ...
      tile.yield %y : !tile.reg<16x128xbf16>
    }
    ```
  }];
  let arguments = (ins Tile_Smem:$source, I64Attr:$rows, Optional<Tile_Smem>:$into);
  let results = (outs Tile_Smem:$result);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $source `rows` $rows (`into` $into^ `:` type($into) `,`)? attr-dict `:` type($source) `->` type($result) $body
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// Whether the result stands in the source's memory.
    bool isInPlace() { return getSource().getType() == getResult().getType(); }
  }];
}

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

def Tile_SplatOp : Tile_Op<"splat", [Pure]> {
  let summary = "every element is the scalar";
  let arguments = (ins AnyType:$value);
  let results = (outs Tile_Reg:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_MapOp : Tile_Op<"map", [SingleBlock, RecursiveMemoryEffects, AttrSizedOperandSegments]> {
  let summary = "the elementwise op";
  let description = [{
    Each operand is aligned with the dimensions of the result that it spans
    (`[1]`, `[0, 1]`; all of them when not written). The body gets one scalar
    per operand, then one index per `at` name (element coordinates), and yields
    one scalar per result. It may capture uniform scalars and memrefs.
    ```
    %p = tile.map (%e = %s : !s, %b = %m[0] : !row) at (%i, %j) -> !s { ... tile.yield %z : f32 }
    %x = tile.map arith.mulf(%s : !s, %f[0] : !row) -> !s
    ```
  }];
  let arguments = (ins Variadic<Tile_Reg>:$inputs, Variadic<AnyType>:$uniforms, ArrayAttr:$dims, UnitAttr:$at);
  let results = (outs Variadic<Tile_Reg>:$results);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let skipDefaultBuilders = 1;
  let builders = [
    // `dims[i]`: result dimensions that input i spans; empty = all of them.
    OpBuilder<(ins "::mlir::TypeRange":$results, "::mlir::ValueRange":$inputs,
                   "::llvm::ArrayRef<::llvm::SmallVector<int64_t>>":$dims, "bool":$at,
                   "::llvm::function_ref<::llvm::SmallVector<::mlir::Value>(::mlir::OpBuilder &, ::mlir::Location, ::mlir::ValueRange inputs, ::mlir::ValueRange indices)>":$body)>
  ];
  let extraClassDeclaration = [{
    /// Result dimensions that input `i` spans (expanded: never empty unless the input has rank 0).
    ::llvm::SmallVector<int64_t> getInputDims(unsigned i);
    /// Shape shared by the results.
    ::llvm::ArrayRef<int64_t> getShape();
    ::mlir::ValueRange getInputArgs();
    ::mlir::ValueRange getIndexArgs();
    YieldOp getYield();
  }];
}

def Tile_MaskOp : Tile_Op<"mask", [SingleBlock, RecursiveMemoryEffects, AttrSizedOperandSegments]> {
  let summary = "keeps the elements for which the region yields true, puts `other` elsewhere";
  let description = [{
    `unless %j in [%lo, %hi)`: the author of the op vouches that no element of
    rows that exist is dropped when lo <= j and j + (extent of the key
    dimension(s)) <= hi; a pass may then remove the mask from that part of a
    loop, and code may branch around it, citing the interval.
    ```
    %y = tile.mask %x (%qp = %qpos[0] : !row) at (%r, %c) unless %j in [%lo, %hi) keys 128 : !s { ... tile.yield %in : i1 }
    ```
    `other` is -inf, or 0 with `zero` (no softmax).
  }];
  let arguments = (ins Tile_Reg:$value, Variadic<Tile_Reg>:$inputs, ArrayAttr:$dims,
                       Optional<Index>:$key, Optional<Index>:$lo, Optional<Index>:$hi,
                       DefaultValuedAttr<I64Attr, "0">:$keys, UnitAttr:$zero);
  let results = (outs Tile_Reg:$result);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let skipDefaultBuilders = 1;
  let builders = [
    OpBuilder<(ins "::mlir::Value":$value, "::mlir::ValueRange":$inputs,
                   "::llvm::ArrayRef<::llvm::SmallVector<int64_t>>":$dims, "::mlir::Value":$key, "::mlir::Value":$lo,
                   "::mlir::Value":$hi, "int64_t":$keys, "bool":$zero,
                   "::llvm::function_ref<::mlir::Value(::mlir::OpBuilder &, ::mlir::Location, ::mlir::ValueRange inputs, ::mlir::ValueRange indices)>":$body)>
  ];
  let extraClassDeclaration = [{
    ::llvm::SmallVector<int64_t> getInputDims(unsigned i);
    ::mlir::ValueRange getInputArgs();
    ::mlir::ValueRange getIndexArgs();
    YieldOp getYield();
  }];
}

def Tile_ReduceOp : Tile_Op<"reduce", [Pure]> {
  let summary = "reduces one dimension";
  let description = [{
    `tile.reduce maximumf %y dim 1 init %m : !s -> !row`. After layouts, `scope
    thread` combines only what a thread holds (the result's layout is a partial
    slice) and `scope lanes` combines the lanes of a partial slice (no dim).
  }];
  let arguments = (ins Tile_ReduceKind:$kind, Tile_Reg:$value, OptionalAttr<I64Attr>:$dim, Optional<Tile_Reg>:$init,
                       DefaultValuedAttr<Tile_ReduceScope, "::mlir::tile::ReduceScope::All">:$scope);
  let results = (outs Tile_Reg:$result);
  let assemblyFormat = [{
    $kind $value (`dim` $dim^)? (`init` $init^ `:` type($init) `,`)? (`scope` $scope^)? attr-dict `:` type($value) `->` type($result)
  }];
  let hasVerifier = 1;
}

class Tile_DotBase<string mnemonic, Type accType, list<Trait> traits> : Tile_Op<mnemonic, traits> {
  let arguments = (ins Tile_RegOrSmem:$a, Tile_RegOrSmem:$b, Optional<accType>:$acc, UnitAttr:$transpose_b);
  let hasVerifier = 1;
}

def Tile_DotOp : Tile_DotBase<"dot", Tile_Reg, [MemoryEffects<[MemRead]>]> {
  let summary = "matrix product: a[.., m, k] times b[.., k, n] (b[.., n, k] with transpose_b), plus acc";
  let description = [{
    Leading dimensions are batch dimensions; an operand without them is shared.
    ```
    %s = tile.dot %q, %k transpose_b : (!q, !k) -> !s
    %o = tile.dot %p, %v acc %o0 : (!p, !v) -> !o
    ```
  }];
  let results = (outs Tile_Reg:$result);
  let assemblyFormat = [{
    $a `,` $b (`transpose_b` $transpose_b^)? (`acc` $acc^)? attr-dict `:` custom<DotTypes>(ref($acc), type($a), type($b), type($acc), type($result))
  }];
}

def Tile_DotAsyncOp : Tile_DotBase<"dot_async", Tile_RegOrPending, [MemoryEffects<[MemRead]>]> {
  let summary = "a matrix product in flight (level P)";
  let results = (outs Tile_Pending:$result);
  let assemblyFormat = [{
    $a `,` $b (`transpose_b` $transpose_b^)? (`acc` $acc^)? attr-dict `:` custom<DotTypes>(ref($acc), type($a), type($b), type($acc), type($result))
  }];
}

def Tile_AwaitOp : Tile_Op<"await", [MemoryEffects<[MemRead]>]> {
  let summary = "waits for a pending accumulator; awaits come in issue order";
  let description = [{
    `after %s terms 4`: the wait stays behind the first 4 terms of the sums of
    %s (a tile.reduce addf with scope thread). Without it the machine's
    scheduler, which sees no order between the two, may put the wait before
    the work that is meant to overlap with the product.
  }];
  let arguments = (ins Tile_Pending:$pending, Optional<Tile_Reg>:$after, DefaultValuedAttr<I64Attr, "0">:$terms);
  let results = (outs Tile_Reg:$result);
  let assemblyFormat = [{
    $pending (`after` $after^ `terms` $terms `:` type($after) `,`)? attr-dict `:` type($pending) `->` type($result)
  }];
  let builders = [OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$pending), [{
    build($_builder, $_state, result, pending, ::mlir::Value(), 0);
  }]>];
  let hasVerifier = 1;
}

def Tile_SliceOp : Tile_Op<"slice", [Pure]> {
  let summary = "a part of a register tile (cuts at multiples of 8)";
  let arguments = (ins Tile_Reg:$source, DenseI64ArrayAttr:$offsets);
  let results = (outs Tile_Reg:$result);
  let assemblyFormat = "$source $offsets attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_ConcatOp : Tile_Op<"concat", [Pure]> {
  let summary = "register tiles side by side along one dimension";
  let arguments = (ins Variadic<Tile_Reg>:$inputs, I64Attr:$dim);
  let results = (outs Tile_Reg:$result);
  let assemblyFormat = "$inputs `dim` $dim attr-dict `:` type($inputs) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_SwapPairsOp : Tile_Op<"swap_pairs", [Pure, AllTypesMatch<["source", "result"]>]> {
  let summary = "elements 2t and 2t + 1 of the last dimension trade places";
  let description = [{
    `%y = tile.swap_pairs %x : !t`, y[.., d] = x[.., d xor 1]. The partner of an
    element in rotary embeddings with interleaved pairs. Mma and A layouts keep
    pairs of columns in one thread, so it costs no exchange there.
  }];
  let arguments = (ins Tile_Reg:$source);
  let results = (outs Tile_Reg:$result);
  let assemblyFormat = "$source attr-dict `:` type($source)";
  let hasVerifier = 1;
}

def Tile_ConvertLayoutOp : Tile_Op<"convert_layout", [Pure]> {
  let summary = "the same tile in another layout (made by layout assignment only)";
  let arguments = (ins Tile_Reg:$source);
  let results = (outs Tile_Reg:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Asynchrony (levels P and S)
//===----------------------------------------------------------------------===//

def Tile_PipelineOp : Tile_Op<"pipeline", [MemoryEffects<[MemAlloc]>]> {
  let summary = "stages of shared memory and their signals";
  let description = [{
    With `chain %q` the pipeline has no memory of its own: its slots are those
    of `%q`, handed on by the consumers of `%q` to this pipeline's consumer,
    whose release frees the slot of `%q`. So a slot that held Q leaves with O.
    A consumer of `%q` takes the oldest slot that it holds by
    `producer_acquire` here, writes, and hands it on by `commit`; it does not
    release `%q`. The consumer here may wait for `%q` too, for its words. `producers` is the number of
    groups that commit a stage (1 unless chained), `consumers` the number of
    groups that release it.
  }];
  let arguments = (ins Optional<Tile_Pipeline>:$chain, DefaultValuedAttr<I64Attr, "1">:$producers,
                       DefaultValuedAttr<I64Attr, "1">:$consumers);
  let results = (outs Tile_Pipeline:$result);
  let assemblyFormat = [{
    (`chain` $chain^ `:` type($chain))? (`producers` $producers^)? (`consumers` $consumers^)? attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_ProducerAcquireOp : Tile_Op<"producer_acquire", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "waits until the next stage is free; the k-th call of a role gets stage k mod N";
  let arguments = (ins Tile_Pipeline:$pipeline);
  let results = (outs Tile_Smem:$slot);
  let assemblyFormat = "$pipeline attr-dict `:` type($pipeline) `->` type($slot)";
  let hasVerifier = 1;
}

def Tile_LoadAsyncOp : Tile_Op<"load_async", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "rows of a view into an acquired stage; completion is the stage's full signal";
  let description = [{
    Rows past the view's end are zero at level P. At level S they may hold
    anything: who contracts over them zeroes them first (`tile.fill_rows`).
  }];
  let arguments = (ins Tile_View:$view, Index:$row, Tile_Smem:$slot, Tile_Pipeline:$pipeline);
  let assemblyFormat = [{
    $view `[` $row `]` `into` $slot `signal` $pipeline attr-dict `:` type($view) `,` type($slot) `,` type($pipeline)
  }];
  let hasVerifier = 1;
}

def Tile_SendOp : Tile_Op<"send", [MemoryEffects<[MemWrite]>]> {
  let summary = "words that travel with the acquired stage; before its load_async or commit";
  let description = [{
    Words that are not given are 0. A stage committed with words only may end a
    stream: nobody need give it back.
  }];
  let arguments = (ins Tile_Pipeline:$pipeline, Variadic<Index>:$words);
  let assemblyFormat = "$pipeline `(` $words `)` attr-dict `:` type($pipeline)";
  let hasVerifier = 1;
}

def Tile_CommitOp : Tile_Op<"commit", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "signals a stage full without a load: after local_store into it, or with words only";
  let arguments = (ins Tile_Pipeline:$pipeline);
  let assemblyFormat = "$pipeline attr-dict `:` type($pipeline)";
}

def Tile_ConsumerWaitOp : Tile_Op<"consumer_wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "waits until the next stage is full; yields it and its words";
  let description = [{
    With `observes` the words only: the role does not hold the stage and gives
    nothing back. Its author vouches that the stage is not freed, before the
    words are read, by those who hold it.
  }];
  let arguments = (ins Tile_Pipeline:$pipeline, UnitAttr:$observes);
  let results = (outs Tile_Smem:$slot, Variadic<Index>:$words);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Tile_ConsumerReleaseOp : Tile_Op<"consumer_release", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "gives back the oldest stage waited for and not yet released";
  let arguments = (ins Tile_Pipeline:$pipeline);
  let assemblyFormat = "$pipeline attr-dict `:` type($pipeline)";
  let hasVerifier = 1;
}

def Tile_StoreAsyncOp : Tile_Op<"store_async", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "a whole stage to the rows of a view; finished before the stage's release takes effect";
  let description = [{ Every row must exist (bulk stores are for whole tiles only). }];
  let arguments = (ins Tile_Smem:$slot, Tile_View:$view, Index:$row);
  let assemblyFormat = "$slot `,` $view `[` $row `]` attr-dict `:` type($slot) `,` type($view)";
  let hasVerifier = 1;
}

#endif
