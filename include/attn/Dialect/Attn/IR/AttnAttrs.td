//===- AttnAttrs.td - format, config, target ---------------*- tablegen -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_ATTN_ATTRS
#define ATTN_ATTN_ATTRS

include "attn/Dialect/Attn/IR/AttnBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

class Attn_Attr<string name, string mnemonic_> : AttrDef<Attn_Dialect, name> {
  let mnemonic = mnemonic_;
}

def Attn_FormatKind : I32EnumAttr<"FormatKind", "how a request finds its keys", [
  I32EnumAttrCase<"Ragged", 0, "ragged">,
  I32EnumAttrCase<"Paged", 1, "paged">,
  I32EnumAttrCase<"Bsr", 2, "bsr">
]> {
  let cppNamespace = "::mlir::attn";
  let genSpecializedAttr = 0;
}

def Attn_HookKind : I32EnumAttr<"HookKind", "what a hook acts on", [
  I32EnumAttrCase<"Query", 0, "query">,
  I32EnumAttrCase<"Key", 1, "key">,
  I32EnumAttrCase<"Value", 2, "value">,
  I32EnumAttrCase<"Logits", 3, "logits">,
  I32EnumAttrCase<"Mask", 4, "mask">,
  I32EnumAttrCase<"Sink", 5, "sink">,
  I32EnumAttrCase<"Output", 6, "output">
]> {
  let cppNamespace = "::mlir::attn";
}

def Attn_Normalizer : I32EnumAttr<"Normalizer", "how weights are normalised", [
  I32EnumAttrCase<"Softmax", 0, "softmax">,
  I32EnumAttrCase<"None", 1, "none">
]> {
  let cppNamespace = "::mlir::attn";
}

def Attn_LseBaseEnum : I32EnumAttr<"LseBase", "base of the logarithm in lse", [
  I32EnumAttrCase<"Natural", 0, "natural">,
  I32EnumAttrCase<"Base2", 1, "base2">
]> {
  let cppNamespace = "::mlir::attn";
  let genSpecializedAttr = 0;
}
def Attn_LseBase : EnumAttr<Attn_Dialect, Attn_LseBaseEnum, "lse_base"> {
  let summary = "base of the logarithm in lse: `#attn.lse_base<natural>` or `#attn.lse_base<base2>`";
  let assemblyFormat = "`<` $value `>`";
}

def Attn_LoadPath : I32EnumAttr<"LoadPath", "how K and V reach shared memory", [
  I32EnumAttrCase<"Gather", 0, "gather">,
  I32EnumAttrCase<"Tma", 1, "tma">
]> {
  let cppNamespace = "::mlir::attn";
  let genSpecializedAttr = 0;
}

def Attn_ItemOrder : I32EnumAttr<"ItemOrder", "who decides which CTA takes which item", [
  I32EnumAttrCase<"List", 0, "list">,
  I32EnumAttrCase<"Counter", 1, "counter">
]> {
  let cppNamespace = "::mlir::attn";
  let genSpecializedAttr = 0;
}

def Attn_FormatAttr : Attn_Attr<"Format", "format"> {
  let summary = "KV format: `#attn.format<paged>`, `#attn.format<ragged>`, `#attn.format<bsr, row_block = 64>`";
  let description = [{
    ragged: K and V are [token, head, d], kv_indptr holds token offsets.
    paged: K and V are [page, row in page, head, d]; kv_indptr runs over
    kv_indices (page numbers), kv_last is the valid length of each last page.
    bsr: as paged with row blocks of `row_block` query rows instead of requests;
    the column block is the page dimension of K. The number of levels is the number of kv_indptr operands.
  }];
  let parameters = (ins EnumParameter<Attn_FormatKind>:$kind, DefaultValuedParameter<"int64_t", "0">:$row_block);
  let assemblyFormat = "`<` $kind (`,` `row_block` `=` $row_block^)? `>`";
  let genVerifyDecl = 1;
}

def Attn_ConfigAttr : Attn_Attr<"Config", "config"> {
  let summary = "every compile-time choice of one kernel";
  let description = [{
    `rows` query rows (packed) of a tile, the tile class; `keys` keys of a tile;
    `stages` of the K and V pipelines; `warps` that compute; `groups` of keys with states of their own
    (decode: one a warp, merged at the end of the item; 1 elsewhere);
    `pack` query heads packed into rows (1 or the GQA group); `row_table` rows of
    several requests in one item (positions come from AttnTokenInfo);
    `consumers` warpgroups (Hopper); `q_in_registers`; `load` path; item `order`; `turns`: the consumers issue their
    products in turns (FlashAttention-3's ping-pong); `peel`: blocks that need the mask have key loops of their own,
    else one loop takes all blocks and branches around the mask (less code, which compiles sooner).
    Example: `#attn.config<rows = 128, keys = 128, stages = 2, warps = 8, pack = 1, load = tma>`.
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$keys,
    DefaultValuedParameter<"int64_t", "2">:$stages, DefaultValuedParameter<"int64_t", "4">:$warps,
    DefaultValuedParameter<"int64_t", "1">:$groups, DefaultValuedParameter<"int64_t", "1">:$pack,
    DefaultValuedParameter<"bool", "false">:$row_table,
    DefaultValuedParameter<"int64_t", "0">:$consumers, DefaultValuedParameter<"bool", "false">:$q_in_registers,
    DefaultValuedParameter<"::mlir::attn::LoadPath", "::mlir::attn::LoadPath::Gather">:$load,
    DefaultValuedParameter<"::mlir::attn::ItemOrder", "::mlir::attn::ItemOrder::List">:$order,
    DefaultValuedParameter<"bool", "false">:$turns, DefaultValuedParameter<"bool", "true">:$peel);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Attn_TargetAttr : Attn_Attr<"Target", "target"> {
  let summary = "the machine: `#attn.target<\"sm_90a\">`; its limits are in lib/Target/KnownTargets.cpp";
  let parameters = (ins StringRefParameter<"chip">:$chip);
  let assemblyFormat = "`<` $chip `>`";
}

#endif
