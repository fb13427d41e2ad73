//===- Kernels.c - host kernels by hand, for the runtime's tests -*- C -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A plain attention kernel and a plain merge kernel against ABI.h. Broken
// rules (chunk not on a tile boundary, rows above the class) abort: a test
// that plans wrongly should not pass by luck.
//
//===----------------------------------------------------------------------===//

#include "attn/ABI/ABI.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The words of TestBundle.h, in order. */
enum {
  Q,
  QToken,
  QHead,
  HeadsQo,
  DimQk,
  K,
  KPage,
  KRow,
  KHead,
  HeadsKv,
  V,
  VPage,
  VRow,
  VHead,
  O,
  OToken,
  OHead,
  DimVo,
  Lse,
  LseToken,
  Pages,
  PageSize,
  PartO,
  PartLse,
  Items,
  CtaIndptr,
  Tokens,
  Scale,
  Causal,
  Window,
  Bias,
  Counter, /* kernels that take items from one list */
  CtaIndptrSize
};
enum { MPartO, MPartLse, MItems, MCtaIndptr, MPieces, MO, MOToken, MOHead, MDimVo, MLse, MLseToken };

typedef struct {
  int format; /* 0 ragged, 1 paged, 2 bsr */
  int packed, row_table, rows, keys;
  int counter;
} Config;

static void require(int condition) {
  if (!condition)
    abort();
}

/* The next item of the shared list. Every CTA gets one number past its end; the last of them leaves 0 for the next run.
 */
static int32_t take(const AttnWord *w, int32_t count, int32_t ctas) {
  uint32_t *counter = w[Counter].pointer;
  const int32_t ticket = (int32_t)__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
  if (ticket == count + ctas - 1)
    __atomic_store_n(counter, 0, __ATOMIC_RELAXED);
  return ticket;
}

static void attend(const AttnWord *w, int32_t cta, void *scratch, Config c) {
  require(((uintptr_t)scratch & 63) == 0 && scratch);
  memset(scratch, 0xff, 1024); /* the manifest's smem */
  const int32_t *indptr = w[CtaIndptr].pointer;
  const AttnWorkItem *items = w[Items].pointer;
  const AttnTokenInfo *tokens = w[Tokens].pointer;
  const int64_t heads = w[HeadsQo].integer, group = heads / w[HeadsKv].integer, pack = c.packed ? group : 1;
  const int64_t dqk = w[DimQk].integer, dvo = w[DimVo].integer;
  const int32_t ctas = c.counter ? (int32_t)w[CtaIndptrSize].integer - 1 : 0;
  const int32_t end = c.counter ? indptr[ctas] : indptr[cta + 1];
  for (int32_t i = c.counter ? take(w, end, ctas) : indptr[cta]; i < end; i = c.counter ? take(w, end, ctas) : i + 1) {
    const AttnWorkItem it = items[i];
    require(it.rows >= 1 && it.rows <= c.rows && it.klo % c.keys == 0 && it.khi <= it.kv_len && it.klo <= it.khi);
    require(it.head % pack == 0 && it.reserved == 0);
    for (int32_t r = 0; r < it.rows; ++r) {
      const int64_t token = it.token0 + r / pack, head = it.head + r % pack, kvh = head / group;
      int64_t pos = it.qpos0 + r / pack;
      if (c.row_table) {
        pos = tokens[token].position;
        require(pos == tokens[token].row + tokens[token].kv_total - tokens[token].qo_len);
      } else {
        require(it.qpos0 == it.row0 + it.kv_total - it.qo_len && it.row0 + r / pack < it.qo_len);
      }
      const float *q = (const float *)w[Q].pointer + token * w[QToken].integer + head * w[QHead].integer;
      double m = -INFINITY, l = 0, acc[64] = {0};
      for (int64_t j = it.klo; j < it.khi; ++j) {
        int64_t row = it.table + j, page = 0, gpos = it.kpos0 + j;
        if (c.format) {
          int64_t size = w[PageSize].integer;
          page = ((const int32_t *)w[Pages].pointer)[it.table + j / size];
          row = j % size;
          if (c.format == 2)
            gpos = page * size + row;
        }
        if (w[Causal].integer && gpos > pos)
          continue;
        if (w[Window].integer >= 0 && gpos < pos - w[Window].integer)
          continue;
        const float *k =
            (const float *)w[K].pointer + page * w[KPage].integer + row * w[KRow].integer + kvh * w[KHead].integer;
        const float *v =
            (const float *)w[V].pointer + page * w[VPage].integer + row * w[VRow].integer + kvh * w[VHead].integer;
        double s = 0;
        for (int64_t d = 0; d < dqk; ++d)
          s += (double)q[d] * k[d];
        s = s * w[Scale].f32 + w[Bias].f32;
        double next = s > m ? s : m, keep = exp(m - next), p = exp(s - next);
        l = l * keep + p;
        for (int64_t d = 0; d < dvo; ++d)
          acc[d] = acc[d] * keep + p * v[d];
        m = next;
      }
      float *o = it.slot < 0 ? (float *)w[O].pointer + token * w[OToken].integer + head * w[OHead].integer
                             : (float *)w[PartO].pointer + (int64_t)(it.slot + r) * dvo;
      float *lse = it.slot < 0 ? (float *)w[Lse].pointer + token * w[LseToken].integer + head
                               : (float *)w[PartLse].pointer + it.slot + r;
      for (int64_t d = 0; d < dvo; ++d)
        o[d] = l > 0 ? (float)(acc[d] / l) : 0.0f;
      *lse = l > 0 ? (float)(m + log(l)) : -INFINITY;
    }
  }
}

#define KERNEL(name, ...)                                                                                              \
  void name(const AttnWord *words, int32_t cta, void *scratch) {                                                       \
    Config c = {__VA_ARGS__};                                                                                          \
    attend(words, cta, scratch, c);                                                                                    \
  }
/* format, packed, row_table, rows, keys, counter */
KERNEL(ragged_16, 0, 1, 0, 16, 32)
KERNEL(ragged_64, 0, 0, 0, 64, 16)
KERNEL(ragged_96, 0, 0, 0, 96, 16)
KERNEL(ragged_table, 0, 1, 1, 32, 16)
KERNEL(paged_16, 1, 1, 0, 16, 32)
KERNEL(paged_64, 1, 0, 0, 64, 16)
KERNEL(paged_96, 1, 0, 0, 96, 16)
KERNEL(paged_table, 1, 1, 1, 32, 16)
KERNEL(paged_counter, 1, 1, 0, 16, 32, 1)
KERNEL(bsr_16, 2, 1, 0, 16, 32)
KERNEL(bsr_64, 2, 0, 0, 64, 16)
KERNEL(bsr_96, 2, 0, 0, 96, 16)

void merge(const AttnWord *w, int32_t cta, void *scratch) {
  require(scratch == NULL); /* smem 0 */
  const int32_t *indptr = w[MCtaIndptr].pointer;
  const AttnWorkItem *items = w[MItems].pointer;
  const AttnMergePiece *pieces = w[MPieces].pointer;
  const float *part_o = w[MPartO].pointer, *part_lse = w[MPartLse].pointer;
  const int64_t dvo = w[MDimVo].integer;
  for (int32_t i = indptr[cta]; i < indptr[cta + 1]; ++i) {
    const AttnWorkItem it = items[i];
    require(it.khi >= 1 && it.rows >= 1 && it.rows <= 3 && it.slot == -1);
    require(it.qpos0 == it.row0 + it.kv_total - it.qo_len);
    for (int32_t r = 0; r < it.rows; ++r) {
      const int32_t head = it.head + r;
      double m = -INFINITY, l = 0, acc[64] = {0};
      for (int32_t p = 0; p < it.khi; ++p) {
        const AttnMergePiece piece = pieces[it.table + p];
        const int64_t row = piece.base + (int64_t)(head / piece.pack) * piece.stride + head % piece.pack;
        const double s = part_lse[row];
        if (s == -INFINITY)
          continue;
        const double next = s > m ? s : m, keep = exp(m - next), weight = exp(s - next);
        l = l * keep + weight;
        for (int64_t d = 0; d < dvo; ++d)
          acc[d] = acc[d] * keep + weight * part_o[row * dvo + d];
        m = next;
      }
      float *o = (float *)w[MO].pointer + it.token0 * w[MOToken].integer + head * w[MOHead].integer;
      for (int64_t d = 0; d < dvo; ++d)
        o[d] = l > 0 ? (float)(acc[d] / l) : 0.0f;
      ((float *)w[MLse].pointer)[it.token0 * w[MLseToken].integer + head] = l > 0 ? (float)(m + log(l)) : -INFINITY;
    }
  }
}
