//===- Svg.cpp - a plan as a picture --------------------------------------===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One panel a kernel, one row a CTA, one box an item: as wide as its cost,
// coloured by request. An outlined box leaves a partial result for the merge.
//
//===----------------------------------------------------------------------===//

#include "PlanView.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

using namespace attnrt;

static void put(std::string &out, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(std::string &out, const char *format, ...) {
  char buffer[512];
  va_list args;
  va_start(args, format);
  int length = vsnprintf(buffer, sizeof(buffer), format, args);
  va_end(args);
  out.append(buffer, std::min<size_t>(std::max(length, 0), sizeof(buffer) - 1));
}

static std::string escape(const std::string &text) {
  std::string out;
  for (char c : text.substr(0, 80))
    out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : c == '"' ? "&quot;" : std::string(1, c);
  return out;
}

/// Hues a golden angle apart: neighbours differ, and a request keeps its colour in all panels.
static double hue(int request) {
  double turns = request * 0.61803398875;
  return 360 * (turns - static_cast<int64_t>(turns));
}

Status Plan::svg(std::string &text) const {
  const PlanImpl &p = *impl;
  if (!p.planned)
    return invalid("svg: there is no plan; call plan first");
  constexpr double left = 70, width = 1000, gap = 56;
  PlanView view(p);

  // The widest row of all kernels sets the scale.
  int64_t widest = 1;
  const int kernels = static_cast<int>(p.kernelState.size());
  auto bounds = [](const KernelView &kernel, int cta, int64_t &from, int64_t &to) {
    from = kernel.desc->counter ? 0 : kernel.indptr[cta];
    to = kernel.desc->counter ? (cta == 0 ? kernel.count : 0) : kernel.indptr[cta + 1];
  };
  for (int k = 0; k < kernels; ++k) {
    KernelView kernel = view.kernel(k);
    for (int c = 0; c < kernel.ctas; ++c) {
      int64_t cost = 0, from, to;
      for (bounds(kernel, c, from, to); from < to; ++from)
        cost += view.find(k, kernel.items[from]).cost;
      widest = std::max(widest, cost);
    }
  }

  std::string body;
  double y = 64;
  for (int k = 0; k < kernels; ++k) {
    KernelView kernel = view.kernel(k);
    if (kernel.count == 0)
      continue;
    const double row = kernel.ctas <= 32 ? 20 : kernel.ctas <= 160 ? 9 : 5;
    put(body, "<text x=\"%g\" y=\"%g\" class=\"h\">%s: %lld items on %d CTAs, %d rows x %d keys</text>\n", left, y,
        escape(kernel.desc->symbol).c_str(), static_cast<long long>(kernel.count), kernel.ctas, kernel.desc->rows,
        kernel.desc->keys);
    y += 10;
    for (int c = 0; c < kernel.ctas; ++c, y += row) {
      if (row >= 9 || c % 10 == 0)
        put(body, "<text x=\"%g\" y=\"%g\" class=\"c\">CTA %d</text>\n", left - 6, y + row * 0.75, c);
      double x = left;
      int64_t from, to;
      for (bounds(kernel, c, from, to); from < to; ++from) {
        const AttnWorkItem &item = kernel.items[from];
        PlanView::Known known = view.find(k, item);
        double wide = width * known.cost / widest;
        put(body,
            "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" fill=\"hsl(%.0f,62%%,%d%%)\"%s><title>request "
            "%d, "
            "level %d, head %d, rows %d from token %d, keys %d to %d of %d%s</title></rect>\n",
            x, y, std::max(wide - 0.5, 0.3), row - 1, hue(item.request), known.level % 2 ? 74 : 62,
            item.slot >= 0 ? " stroke=\"#333\" stroke-width=\"0.8\"" : "", item.request, known.level, item.head,
            item.rows, item.token0, item.klo, item.khi, item.kv_len, item.slot >= 0 ? ", partial" : "");
        if (wide > 44 && row >= 9)
          put(body, "<text x=\"%.2f\" y=\"%.1f\" class=\"i\">r%d h%d</text>\n", x + 3, y + row * 0.75, item.request,
              item.head);
        x += wide;
      }
    }
    y += gap;
  }
  if (p.canSplit())
    put(body, "<text x=\"%g\" y=\"%g\" class=\"h\">merge: %lld items of %lld pieces</text>\n", left, y,
        static_cast<long long>(p.numMergeItems), static_cast<long long>(p.numPieces));
  y += 20;

  text.clear();
  put(text,
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%g\" viewBox=\"0 0 %g %g\" "
      "font-family=\"sans-serif\">\n<style>.h{font-size:14px;font-weight:bold}.c{font-size:8px;text-anchor:end;fill:#"
      "666}"
      ".i{font-size:8px;fill:#111}</style>\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
      left + width + 20, y, left + width + 20, y);
  put(text, "<text x=\"%g\" y=\"24\" class=\"h\">Plan of %s: %lld requests, %lld query tokens</text>\n", left,
      escape(p.manifest().name).c_str(), static_cast<long long>(p.requests), static_cast<long long>(p.totalTokens));
  put(text,
      "<text x=\"%g\" y=\"42\" font-size=\"11\" fill=\"#444\">width: visible keys; colour: request; lighter: odd "
      "level; "
      "outlined: partial result, merged afterwards</text>\n",
      left);
  text += body + "</svg>\n";
  return Status();
}
