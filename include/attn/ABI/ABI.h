//===- ABI.h - what compiled kernels and the runtime agree on -----*- C -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Plain C, no includes beyond the standard ones. The compiler writes what is
// described here into a bundle, the runtime reads it; they share nothing else.
// Every change of a struct, of an enumerator or of the manifest's meaning
// raises ATTN_ABI_VERSION.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_ABI_ABI_H
#define ATTN_ABI_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ATTN_ABI_VERSION 1

/* ---- bundle file ---------------------------------------------------------
 * AttnBundleHeader, then `manifest_bytes` of UTF-8 JSON (the manifest), then
 * padding to 64, then the blobs. Blob offsets in the manifest count from the
 * start of the first blob. Little endian. */
#define ATTN_BUNDLE_MAGIC "ATTNBNDL"

typedef struct AttnBundleHeader {
  char magic[8];           /* ATTN_BUNDLE_MAGIC, not terminated */
  uint32_t abi_version;    /* ATTN_ABI_VERSION */
  uint32_t reserved;       /* 0 */
  uint64_t manifest_bytes; /* JSON bytes after this header */
  uint64_t blob_bytes;     /* bytes of all blobs, after padding to 64 */
} AttnBundleHeader;

/* ---- work item -----------------------------------------------------------
 * One unit of a plan: a tile of packed query rows against one chunk of keys
 * of one level. Packed row r of an item is token `token0 + r / pack` and query
 * head `head + r % pack`, pack being a constant of the kernel (1, or the GQA
 * group size). Positions are global to the request: its keys are numbered
 * 0 .. kv_total-1 across all levels. Merge items use the same record; see the
 * notes in brackets. `tile.for_each` names these fields. */
typedef struct AttnWorkItem {
  int32_t token0;   /* first row of q and o (token index in the batch) */
  int32_t rows;     /* valid packed rows, 1 .. tile class [merge: heads, <= rows of the merge tile] */
  int32_t head;     /* query head of packed row 0 */
  int32_t request;  /* request of the first token */
  int64_t table;    /* paged: element of the page table that holds this level's first page;
                       ragged: first token row of K and V [merge: first AttnMergePiece] */
  int32_t kv_len;   /* keys of this level that exist for the item */
  int32_t kpos0;    /* global position of this level's key 0 */
  int32_t qpos0;    /* global position of token0: row0 + kv_total - qo_len; may be negative */
  int32_t klo;      /* chunk [klo, khi) of the level's keys, klo a multiple of the kernel's `keys` */
  int32_t khi;      /* [merge: number of pieces] */
  int32_t slot;     /* first row of the partial buffers, or -1: write o and lse, finalised */
  int32_t qo_len;   /* query tokens of the request */
  int32_t row0;     /* index of token0 within its request */
  int32_t kv_total; /* keys of the request over all levels */
  int32_t reserved; /* 0 */
} AttnWorkItem;

/* One partial state of a token: head h has it in row
 * base + (h / pack) * stride + h % pack of part_o and part_lse. */
typedef struct AttnMergePiece {
  int32_t base;
  int32_t stride;
  int32_t pack;
  int32_t reserved;
} AttnMergePiece;

/* What a kernel knows of a token when its item holds rows of several requests
 * (kernels with `row_table`): one record per token of the batch. */
typedef struct AttnTokenInfo {
  int32_t position; /* global position of the token in its request */
  int32_t request;
  int32_t row; /* index within the request */
  int32_t qo_len;
  int32_t kv_total;
  int32_t reserved[3];
} AttnTokenInfo;

/* What the planner promises. A token with one item gets o and lse from it (slot -1); otherwise each of its items
 * writes a normalised partial (o, lse) and one merge item folds its pieces, in level order, then key order; a token
 * may be merged from one piece. A request without any key has one item with klo = khi = 0, whose rows are o = 0,
 * lse = -inf. The chunks of a level always cover all of its keys: kernels decide what is visible, not the host.
 * CTA c runs items [cta_indptr[c], cta_indptr[c + 1]); a kernel with a "counter" word takes items 0 ..
 * cta_indptr[gridDim.x] - 1 from one list, the dearest first, and leaves the counter 0 (each plan zeroes it too).
 * bsr: kv_len and klo .. khi count along the row block's list, kpos0 is 0, and a key's position is
 * page index * page_size + offset; kv_total is what qpos0 was made from. */

/* ---- kernel arguments ----------------------------------------------------
 * A kernel takes a list of 8-byte words; the manifest gives the meaning of
 * each. On a GPU each word is one kernel parameter, followed by the tensor
 * maps (128 bytes each, aligned to 64). On the host the kernel is
 *   void symbol(const AttnWord *words, int32_t cta, void *scratch);
 * and runs all items of CTA `cta`; `scratch` is 64-byte aligned and holds the
 * kernel's `smem` bytes, one buffer per thread. */
typedef union AttnWord {
  uint64_t bits;
  void *pointer;
  int64_t integer;
  float f32;
  int32_t i32;
} AttnWord;

typedef void (*AttnHostKernel)(const AttnWord *words, int32_t cta, void *scratch);

/* The manifest (JSON object), version 1. Unknown keys are an error; "element" and "rank" of a parameter are needed for
 * buffers only. On a GPU, rows of q, k, v and o are read in accesses of up to 16 bytes: address and strides are
 * multiples of the largest power of two, at most 16, that divides the bytes of a head vector.
 *
 *  "abi": 1
 *  "name": variant's symbol name         "target": "host" | "sm_80" | ...
 *  "heads_qo", "heads_kv", "head_dim_qk", "head_dim_vo": integers
 *  "type_q", "type_kv", "type_o": "f32"|"bf16"|"f16"|"e4m3"|"e5m2" (f32 on the host only)
 *  "format": "ragged" | "paged" | "bsr"  "page_size": keys per page / Bc (ragged: 0)
 *  "row_block": Br of bsr, else 0        "index_bits": 32 | 64 (page indices in memory)
 *  "levels": largest number of levels    "normalizer": "softmax" | "none"
 *  "lse": "natural" | "base2" | "none"
 *  "causal_rows": true when key visibility ends at the query's own position (only a balance hint)
 *  "params": [{"name", "kind": "f32"|"index"|"buffer", "element": "f32"|"i32"|"i64"|"i8"|"bf16"|"f16", "rank"}]
 *  "kernels": one per tile class, ascending:
 *    [{"symbol", "blob", "rows": tile class, "pack", "keys", "row_table": bool,
 *      "threads": per CTA, "smem": bytes, "ctas_per_sm", "words": [WORD...], "maps": [MAP...],
 *      "scans": bool, false when absent: skips keys by the scans of RANGE}]
 *  "merge": the same object, "rows" = heads of one item; absent when nothing can be split
 *  "range": RANGE | null                 "blobs": [{"kind": "cubin"|"ptx"|"so", "offset", "bytes"}]
 *
 *  WORD: {"kind": "pointer", "operand": O} | {"kind": "stride", "operand": O, "dim": i} (elements)
 *      | {"kind": "size", "operand": O, "dim": i} | {"kind": "param", "name": P} (f32 and index parameters)
 *      | {"kind": "scale"} (sm_scale as f32)
 *  O: "q" [tokens, heads, d], "k" "v" ([tokens, heads, d]; paged and bsr [pages, page_size, heads, d]),
 *     "o" [tokens, heads, d], "lse" [tokens, heads], "pages" [n], "part_o" [rows, d] f32,
 *     "part_lse" [rows] f32, "items" (AttnWorkItem), "cta_indptr" (int32, CTAs + 1), "counter" (uint32),
 *     "tokens" (AttnTokenInfo), "pieces" (AttnMergePiece), or the name of a buffer parameter prefixed "param:".
 *     "pages" has no size (levels are addressed from the first one's array); "lse" is given unless the manifest says
 *     none.
 *  MAP: {"operand": O, "element": type, "dims": [{"extent": X, "stride": Y}...] innermost first, "box": [int...],
 *       "swizzle": 0|32|64|128, "promotion": 0|64|128|256}
 *     X: integer or {"size": dim of the operand}; Y: integer bytes or {"stride": dim}; dims[0] has no stride
 *  RANGE: the mask analysis, for balance only: {"registers": n, "code": [INSTRUCTION...],
 *     "result": [lo, full_lo, full_hi, hi]}
 *     Keys outside [lo, hi) are invisible to every row, keys in [full_lo, full_hi) visible to all. Inputs in registers
 *     0..4: qpos0, rows (tokens), qo_len, kv_total, request; then the index parameters in order (f32 and buffer
 *     parameters take a register too, unusable).
 *  INSTRUCTION: [op, dst, a, b], or as below; R[x] is what register x holds, and an operand is a register's number
 *     unless another meaning is given.
 *     "const" (a is the value), "add", "sub", "mul", "div" (floor), "min", "max",
 *     "load" (a: parameter number, b: index).
 *     ["extent", dst, param, from, to]: dst and dst+1 become the least and the greatest entry of buffer parameter
 *     number `param` at indices [R[from], R[to]); 0 and 0 where that is empty.
 *     ["scan", dst, param, base, from, to, some_lo, some_hi, all_lo, all_hi, flags] looks at the entries at indices
 *     R[base] + i of that parameter for i in [R[from], R[to]). An entry meets `some` in the closed interval
 *     [R[some_lo], R[some_hi]] (empty when the first is larger), or outside of it with bit 0 of `flags`; `all`
 * likewise, with bit 1. dst and dst+1 become the least i that meets `some` and 1 + the greatest one, dst+2 and dst+3
 * the same for `all`, provided that every i between meets it too. Without any (or with a gap, for `all`): max(R[from],
 * R[to]) and R[from]. The tables of extent and scan have rank 1 and elements i8, i32 or i64. A load, extent or scan of
 * what the host may not read ends the program: whole range. Planners need lo and hi only, may widen the first pair of a
 * scan, and give the second as without any. For kernels without "scans" a scan's first pair is R[from], max(R[from],
 * R[to]).
 */

#ifdef __cplusplus
} /* extern "C" */

static_assert(sizeof(AttnBundleHeader) == 32, "bundle header is 32 bytes");
static_assert(sizeof(AttnWorkItem) == 64, "a work item is 64 bytes");
static_assert(sizeof(AttnMergePiece) == 16, "a merge piece is 16 bytes");
static_assert(sizeof(AttnTokenInfo) == 32, "a token record is 32 bytes");
static_assert(sizeof(AttnWord) == 8, "an argument word is 8 bytes");
#endif

#endif /* ATTN_ABI_ABI_H */
