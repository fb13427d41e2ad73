//===- AttnOps.td - variants and attention -----------------*- tablegen -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_ATTN_OPS
#define ATTN_ATTN_OPS

include "attn/Dialect/Attn/IR/AttnAttrs.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Attn_Op<string mnemonic, list<Trait> traits = []> : Op<Attn_Dialect, mnemonic, traits>;

def Attn_Coord : TypeDef<Attn_Dialect, "Coord"> {
  let mnemonic = "coord";
  let summary = "where a hook stands: request, query row and head, key position and head";
}

def Attn_Buffer : AnyTypeOf<[AnyMemRef, AnyRankedTensor]>;

//===----------------------------------------------------------------------===//
// Variants
//===----------------------------------------------------------------------===//

def Attn_VariantOp : Attn_Op<"variant", [IsolatedFromAbove, Symbol, NoTerminator, SingleBlock,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "a named attention variant: parameters and hooks";
  let description = [{
    Parameters are f32, index or memrefs of f32, f16, bf16, i8, i32 or i64 (read
    by `memref.load`). The body holds constants and at most one `attn.hook` of
    each kind. `normalizer` is softmax unless stated.
    ```
    attn.variant @gemma2(%cap: f32, %left: index) {
      attn.hook logits (%x : f32, %at : !attn.coord) { ... attn.yield %2 : f32 }
      attn.hook mask (%at : !attn.coord) { ... attn.yield %in : i1 }
    }
    attn.variant @sigmoid() normalizer(none) { ... }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       DefaultValuedAttr<Attn_Normalizer, "::mlir::attn::Normalizer::Softmax">:$normalizer);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// The hook of that kind, or null.
    HookOp getHook(HookKind kind);
    ::mlir::Block::BlockArgListType getParams() { return getBody().getArguments(); }
    /// Name of parameter `i`, from the text of the op (attribute `param_names`); "p<i>" when it has none.
    std::string getParamName(unsigned i);
  }];
}

def Attn_HookOp : Attn_Op<"hook", [SingleBlock, HasParent<"VariantOp">]> {
  let summary = "one hook of a variant";
  let description = [{
    kind: arguments -> yield
    query, key, value: vector<Dxf32>, coord -> vector<Dxf32> (before the dot; before P V)
    logits: f32, coord -> f32 (the scaled logit, natural-log domain)
    mask: coord -> i1 (true: visible)
    sink: coord -> f32 (a logit without a value, one per query head)
    output: vector<Dxf32>, coord -> vector<Dxf32> (after normalisation, once)

    Bodies are made of a closed list of ops without side effects (docs/Spec.md);
    values of the variant's body (parameters, constants) may be used.
    Coordinates that a hook of this kind does not have do not verify: key and
    value hooks know no query (q_pos, row, q_head), the others but logits and
    mask know no key (kv_pos).
  }];
  let arguments = (ins Attn_HookKind:$kind);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    YieldOp getYield();
    /// The coordinate argument (always the last).
    ::mlir::BlockArgument getCoord() { return getBody().getArguments().back(); }
  }];
}

def Attn_YieldOp : Attn_Op<"yield", [Pure, ReturnLike, Terminator, HasParent<"HookOp">]> {
  let summary = "result of a hook";
  let arguments = (ins AnyType:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

class Attn_CoordOp<string mnemonic, string what> : Attn_Op<mnemonic, [Pure]> {
  let summary = what;
  let arguments = (ins Attn_Coord:$at);
  let results = (outs Index:$result);
  let assemblyFormat = "$at attr-dict";
}
def Attn_QPosOp : Attn_CoordOp<"q_pos", "global position of the query: row + kv_len - qo_len; may be negative">;
def Attn_KVPosOp : Attn_CoordOp<"kv_pos", "global position of the key in its request (bsr: column block * Bc + offset)">;
def Attn_RequestOp : Attn_CoordOp<"request", "number of the request in the batch">;
def Attn_QHeadOp : Attn_CoordOp<"q_head", "query head">;
def Attn_KVHeadOp : Attn_CoordOp<"kv_head", "key/value head">;
def Attn_QoLenOp : Attn_CoordOp<"qo_len", "query tokens of the request">;
def Attn_KVLenOp : Attn_CoordOp<"kv_len", "keys of the request, over all levels">;
def Attn_RowOp : Attn_CoordOp<"row", "index of the query token in its request">;

def Attn_RopeOp : Attn_Op<"rope", [Pure, AllTypesMatch<["value", "result"]>]> {
  let summary = "rotary position embedding of a head vector";
  let description = [{
    Rotates the first `rotary` elements (0: all) at `position`: pairs (t, t +
    rotary/2), or (2t, 2t+1) with `interleaved`. frequency_t = theta^(-2t/rotary)
    / factor, rounded to fp32; the angle position * frequency is reduced exactly
    enough to hold 1e-4 rad at position 1 000 000. With `low_freq`, `high_freq`
    and `original` > 0: Llama-3.1 scaling (frequencies whose wavelength exceeds
    original / low_freq are divided by factor, below original / high_freq kept,
    smooth between).
  }];
  let arguments = (ins AnyVectorOfAnyRank:$value, Index:$position, F64Attr:$theta,
                       DefaultValuedAttr<I64Attr, "0">:$rotary, UnitAttr:$interleaved,
                       DefaultValuedAttr<F64Attr, "1.0">:$factor, DefaultValuedAttr<F64Attr, "0.0">:$low_freq,
                       DefaultValuedAttr<F64Attr, "0.0">:$high_freq, DefaultValuedAttr<I64Attr, "0">:$original);
  let results = (outs AnyVectorOfAnyRank:$result);
  let assemblyFormat = "$value `at` $position attr-dict `:` type($value)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

def Attn_AttentionOp : Attn_Op<"attention", [AttrSizedOperandSegments, DestinationStyleOpInterface,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "attention of a ragged batch of queries over a KV format, under a variant";
  let description = [{
    Shapes: q [tokens, Hq, Dqk], k [..., Hkv, Dqk], v [..., Hkv, Dvo] (see #attn.format), o [tokens, Hq, Dvo],
    lse [tokens, Hq] f32 (optional). qo_indptr [requests + 1] holds token offsets.
    Heads, head dims and the page size are static, everything else is a run-time
    value. All buffers are memrefs, or all are tensors: then o and lse are inits
    and the results are their new values (rows of no request keep the init's
    value). Memrefs may have any strides with a contiguous last dimension. With
    several levels (one kv_indptr each), rows l of `row_indptr` give the runs of
    requests that share each entry of level l; the keys of a request are its
    levels' keys one after another.
    ```
    attn.attention @gemma2(%cap, %left : f32, index) scale %s
      q(%q, %qo_indptr : memref<?x32x128xbf16>, memref<?xi32>)
      kv(%k, %v : memref<?x16x8x128xbf16>, memref<?x16x8x128xbf16>)
      indptr(%kv_indptr : memref<?xi32>) indices(%kv_indices : memref<?xi32>) last(%last : memref<?xi32>)
      outs(%o : memref<?x32x128xbf16>, %lse : memref<?x32xf32>) {format = #attn.format<paged>}
    ```
  }];
  let arguments = (ins OptionalAttr<FlatSymbolRefAttr>:$variant, Variadic<AnyType>:$params, Optional<F32>:$scale,
                       Attn_Buffer:$q, Attn_Buffer:$qo_indptr, Attn_Buffer:$k, Attn_Buffer:$v,
                       Variadic<Attn_Buffer>:$kv_indptr, Variadic<Attn_Buffer>:$kv_indices,
                       Variadic<Attn_Buffer>:$kv_last, Variadic<Attn_Buffer>:$row_indptr,
                       Attn_Buffer:$o, Optional<Attn_Buffer>:$lse,
                       Attn_FormatAttr:$format,
                       DefaultValuedAttr<Attn_LseBase, "::mlir::attn::LseBase::Natural">:$lse_base,
                       OptionalAttr<TypedArrayAttrBase<Attn_ConfigAttr, "configs">>:$configs,
                       OptionalAttr<Attn_TargetAttr>:$target);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    ($variant^ `(` ($params^ `:` type($params))? `)`)? (`scale` $scale^)?
    `q` `(` $q `,` $qo_indptr `:` type($q) `,` type($qo_indptr) `)`
    `kv` `(` $k `,` $v `:` type($k) `,` type($v) `)`
    `indptr` `(` $kv_indptr `:` type($kv_indptr) `)`
    (`indices` `(` $kv_indices^ `:` type($kv_indices) `)`)?
    (`last` `(` $kv_last^ `:` type($kv_last) `)`)?
    (`row_indptr` `(` $row_indptr^ `:` type($row_indptr) `)`)?
    `outs` `(` $o `:` type($o) (`,` $lse^ `:` type($lse))? `)`
    attr-dict (`->` type($results)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable();
    int64_t getQoHeads(); int64_t getKvHeads(); int64_t getHeadDimQk(); int64_t getHeadDimVo();
    /// Keys per page (paged) or column block (bsr); 0 for ragged.
    int64_t getPageSize();
    /// Query heads per KV head.
    int64_t getGroup() { return getQoHeads() / getKvHeads(); }
    /// The variant's op, or null when the op names none.
    VariantOp lookupVariant();
    /// KV levels (one kv_indptr each).
    unsigned getNumLevels() { return getKvIndptr().size(); }
  }];
}

def Attn_MergeOp : Attn_Op<"merge", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "merges partial states (o, lse) of the same rows over disjoint keys";
  let description = [{
    o = sum_i o_i exp(lse_i - lse), lse = log sum_i exp(lse_i), in the order of
    the operands; empty states (lse = -inf) are neutral and any number of them
    merges to (0, -inf). `lse_bases` names the base of each state (all natural
    when absent); they must all be the base of the result, `lse_base`.
    ```
    attn.merge states(%o0, %o1 : memref<?x32x128xf32>, memref<?x32x128xf32>)
      lse(%l0, %l1 : memref<?x32xf32>, memref<?x32xf32>) outs(%o : memref<?x32x128xbf16>, %lse : memref<?x32xf32>)
    ```
    Lowered by convert-attn-to-loops and attn-to-gpu-binary, in the caller's function.
  }];
  let arguments = (ins Variadic<AnyMemRef>:$states, Variadic<AnyMemRef>:$state_lse, AnyMemRef:$o,
                       Optional<AnyMemRef>:$lse, OptionalAttr<TypedArrayAttrBase<Attn_LseBase, "bases">>:$lse_bases,
                       DefaultValuedAttr<Attn_LseBase, "::mlir::attn::LseBase::Natural">:$lse_base);
  let assemblyFormat = [{
    `states` `(` $states `:` type($states) `)` `lse` `(` $state_lse `:` type($state_lse) `)`
    `outs` `(` $o `:` type($o) (`,` $lse^ `:` type($lse))? `)` attr-dict
  }];
  let hasVerifier = 1;
}

def Attn_AppendOp : Attn_Op<"append", [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "writes the K and V of new tokens into the pages of their requests";
  let description = [{
    The tokens [indptr[r], indptr[r + 1]) of k_new and v_new become the last
    keys of request r; the page table already counts them.
    ```
    attn.append (%kn, %vn, %indptr : memref<?x8x128xbf16>, memref<?x8x128xbf16>, memref<?xi32>)
      into (%k, %v : memref<?x16x8x128xbf16>, memref<?x16x8x128xbf16>)
      table (%kv_indptr, %kv_indices, %last : memref<?xi32>, memref<?xi32>, memref<?xi32>)
    ```
    Lowered by convert-attn-to-loops and attn-to-gpu-binary, in the caller's function.
  }];
  let arguments = (ins AnyMemRef:$k_new, AnyMemRef:$v_new, AnyMemRef:$indptr, AnyMemRef:$k, AnyMemRef:$v,
                       AnyMemRef:$kv_indptr, AnyMemRef:$kv_indices, AnyMemRef:$kv_last);
  let assemblyFormat = [{
    `(` $k_new `,` $v_new `,` $indptr `:` type($k_new) `,` type($v_new) `,` type($indptr) `)`
    `into` `(` $k `,` $v `:` type($k) `,` type($v) `)`
    `table` `(` $kv_indptr `,` $kv_indices `,` $kv_last `:` type($kv_indptr) `,` type($kv_indices) `,` type($kv_last) `)`
    attr-dict
  }];
  let hasVerifier = 1;
}

#endif
