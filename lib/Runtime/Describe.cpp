//===- Describe.cpp - a plan as JSON --------------------------------------===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For people and scripts; slow and simple. PlanView is shared with the picture.
//
//===----------------------------------------------------------------------===//

#include "PlanView.h"

#include <nlohmann/json.hpp>

#include <algorithm>

using namespace attnrt;
using Json = nlohmann::ordered_json;

PlanView::PlanView(const PlanImpl &p) : plan(p) {
  for (const Unit &unit : p.units)
    for (int i = 0; i < unit.numPieces; ++i) {
      const Piece &piece = p.pieces[unit.firstPiece + i];
      known[{unit.kernel, unit.token0, unit.kpos0, piece.klo, unit.kvLen}] = {piece.cost, unit.level};
    }
}

KernelView PlanView::kernel(int index) const {
  KernelView view;
  const Manifest &m = plan.manifest();
  const Layout::Kernel &place = index < 0 ? plan.layout.merge : plan.layout.kernels[index];
  view.desc = index < 0 ? &*m.merge : &m.kernels[index];
  view.items = reinterpret_cast<const AttnWorkItem *>(plan.host + place.items);
  view.indptr = reinterpret_cast<const int32_t *>(plan.host + place.indptr);
  view.ctas = place.ctas;
  view.count = index < 0 ? plan.numMergeItems : plan.kernelState[index].items;
  return view;
}

PlanView::Known PlanView::find(int kernel, const AttnWorkItem &item) const {
  auto it = known.find({kernel, item.token0, item.kpos0, item.klo, item.kv_len});
  return it == known.end() ? Known() : it->second;
}

static const char *policyName(SplitPolicy policy) {
  switch (policy) {
  case SplitPolicy::Auto:
    return "auto";
  case SplitPolicy::None:
    return "none";
  case SplitPolicy::Chunk:
    return "chunk";
  case SplitPolicy::BatchInvariant:
    return "batch-invariant";
  }
  return "?";
}

Status Plan::describe(std::string &text) const {
  const PlanImpl &p = *impl;
  if (!p.planned)
    return invalid("describe: there is no plan; call plan first");
  PlanView view(p);
  Json out;
  out["name"] = p.manifest().name;
  out["requests"] = p.requests;
  out["tokens"] = p.totalTokens;
  out["levels"] = p.levels;
  out["policy"] = policyName(p.options.policy);
  out["plan_bytes"] = p.layout.planBytes;
  out["workspace_bytes"] = p.layout.totalBytes;
  out["partial_rows"] = p.numPartRows;
  out["kernels"] = Json::array();
  for (size_t k = 0; k < p.kernelState.size(); ++k) {
    KernelView kernel = view.kernel(static_cast<int>(k));
    Json entry;
    entry["symbol"] = kernel.desc->symbol;
    entry["rows"] = kernel.desc->rows;
    entry["pack"] = kernel.desc->pack;
    entry["keys"] = kernel.desc->keys;
    entry["row_table"] = kernel.desc->rowTable;
    entry["ctas"] = kernel.ctas;
    entry["items"] = kernel.count;
    int64_t total = 0, largest = 0;
    Json ctas = Json::array();
    int64_t next = 0;
    for (int c = 0; c < kernel.ctas; ++c) {
      Json list = Json::array();
      int64_t cost = 0;
      // A shared list (counter) shows as the first CTA's.
      for (next = kernel.desc->counter ? 0 : kernel.indptr[c];
           next < (kernel.desc->counter ? (c == 0 ? kernel.count : 0) : kernel.indptr[c + 1]); ++next) {
        const AttnWorkItem &item = kernel.items[next];
        PlanView::Known known = view.find(static_cast<int>(k), item);
        cost += known.cost;
        list.push_back({{"request", item.request},
                        {"level", known.level},
                        {"token0", item.token0},
                        {"rows", item.rows},
                        {"head", item.head},
                        {"keys", {item.klo, item.khi}},
                        {"kv_len", item.kv_len},
                        {"kpos0", item.kpos0},
                        {"qpos0", item.qpos0},
                        {"slot", item.slot},
                        {"cost", known.cost}});
      }
      total += cost;
      largest = std::max(largest, cost);
      ctas.push_back(std::move(list));
    }
    entry["cost"] = total;
    entry["largest_cta_cost"] = largest;
    entry["balance"] = largest ? static_cast<double>(total) / (static_cast<double>(largest) * kernel.ctas) : 1.0;
    entry["cta_items"] = std::move(ctas);
    out["kernels"].push_back(std::move(entry));
  }
  if (p.canSplit()) {
    KernelView merge = view.kernel(-1);
    out["merge"] = {
        {"symbol", merge.desc->symbol}, {"ctas", merge.ctas}, {"items", merge.count}, {"pieces", p.numPieces}};
  }
  text = out.dump(1);
  return Status();
}
