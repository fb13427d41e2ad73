//===- Dot.cpp - matrix products as register-blocked loops ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// a[m, k] b[n, k]^T: both operands are contiguous along k, so that nothing is
// transposed; a block of MR x NR products accumulates in MR * NR = W vectors of
// W lanes, which one tree of shuffles turns into the W sums.
//
//     for n step NR, m step MR:  acc[MR][NR] = 0
//       for k step W: acc[i][j] += a[m + i, k..] * b[n + j, k..]
//       c[m + i, n + j] = sum(acc[i][j])
//
// a[m, k] b[k, n]: rows of b are vectors, elements of a are broadcast.
//
//     for n step NV * W, m step MR:  acc[MR][NV] = c or 0
//       for k: acc[i][j] += splat(a[m + i, k]) * b[k, n + j * W..]
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

using namespace mlir;
using namespace mlir::tile;
using namespace mlir::tile::cpu;

/// `position` behind as many batch indices as the tile has.
static SmallVector<Value> at(const TileRef &tile, ValueRange batch, Value row, Value column) {
  SmallVector<Value> position(batch.take_front(tile.shape.size() - 2));
  position.push_back(row);
  position.push_back(column);
  return position;
}

void Emitter::dotTransposed(const TileRef &a, const TileRef &bt, const TileRef *acc, const TileRef &c,
                            ValueRange batch) {
  int64_t m = c.shape[c.shape.size() - 2], n = c.shape.back(), k = a.shape.back();
  int64_t w = widthFor(k), mr = 1, nr = 1;
  for (;; w /= 2) {
    mr = w >= 8 ? 4 : w >= 4 ? 2 : 1;
    while (m % mr)
      mr /= 2;
    nr = w / mr;
    if (n % nr == 0)
      break;
  }
  Type vector = vec(b.getF32Type(), w);
  if (w == 1)
    vector = VectorType::get({1}, b.getF32Type());
  auto plus = [&](Value base, int64_t i) -> Value {
    return i ? arith::AddIOp::create(b, loc, base, index(i)).getResult() : base;
  };
  loop(n, nr, [&](Value column) {
    loop(m, mr, [&](Value row) {
      SmallVector<Value> sums(mr * nr, constant(vector, 0.0));
      auto forOp = scf::ForOp::create(b, loc, index(0), index(k), index(w), sums);
      {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToStart(forOp.getBody());
        Value step = forOp.getInductionVar();
        SmallVector<Value> left, right, next;
        for (int64_t i = 0; i < mr; ++i)
          left.push_back(loadTile(a, at(a, batch, plus(row, i), step), w));
        for (int64_t j = 0; j < nr; ++j)
          right.push_back(loadTile(bt, at(bt, batch, plus(column, j), step), w));
        for (int64_t i = 0; i < mr; ++i)
          for (int64_t j = 0; j < nr; ++j)
            next.push_back(math::FmaOp::create(b, loc, left[i], right[j], forOp.getRegionIterArg(i * nr + j)));
        scf::YieldOp::create(b, loc, next);
      }
      sums.assign(forOp.getResults().begin(), forOp.getResults().end());
      // Step s: lane l of the result holds part of the sum of the vector whose number has the bits of l below 2 s.
      for (int64_t s = 1; s < w; s *= 2) {
        SmallVector<int64_t> low, high;
        for (int64_t lane = 0; lane < w; ++lane) {
          low.push_back(lane & s ? w + lane - s : lane);
          high.push_back(lane & s ? w + lane : lane + s);
        }
        SmallVector<Value> paired;
        for (size_t i = 0; i < sums.size(); i += 2)
          paired.push_back(arith::AddFOp::create(b, loc, vector::ShuffleOp::create(b, loc, sums[i], sums[i + 1], low),
                                                 vector::ShuffleOp::create(b, loc, sums[i], sums[i + 1], high)));
        sums = paired;
      }
      for (int64_t i = 0; i < mr; ++i) {
        SmallVector<Value> position = at(c, batch, plus(row, i), column);
        Value part = sums[0];
        if (mr > 1)
          part = vector::ExtractStridedSliceOp::create(b, loc, part, ArrayRef<int64_t>{i * nr}, ArrayRef<int64_t>{nr},
                                                       ArrayRef<int64_t>{1});
        if (acc)
          part = arith::AddFOp::create(b, loc, part, loadTile(*acc, position, nr));
        storeTile(part, c, position);
      }
    });
  });
}

void Emitter::dotPlain(const TileRef &a, const TileRef &bn, const TileRef *acc, const TileRef &c, ValueRange batch) {
  int64_t m = c.shape[c.shape.size() - 2], n = c.shape.back(), k = a.shape.back();
  int64_t w = widthFor(n), mr = 4, nv = options.width >= 16 ? 4 : 2;
  while (m % mr)
    mr /= 2;
  while (n % (nv * w))
    nv /= 2;
  VectorType vector = VectorType::get({w}, b.getF32Type());
  auto plus = [&](Value base, int64_t i) -> Value {
    return i ? arith::AddIOp::create(b, loc, base, index(i)).getResult() : base;
  };
  loop(n, nv * w, [&](Value column) {
    loop(m, mr, [&](Value row) {
      SmallVector<Value> sums;
      for (int64_t i = 0; i < mr; ++i)
        for (int64_t j = 0; j < nv; ++j)
          sums.push_back(acc ? loadTile(*acc, at(*acc, batch, plus(row, i), plus(column, j * w)), w)
                             : constant(vector, 0.0));
      auto forOp = scf::ForOp::create(b, loc, index(0), index(k), index(1), sums);
      {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToStart(forOp.getBody());
        Value step = forOp.getInductionVar();
        SmallVector<Value> right, next;
        for (int64_t j = 0; j < nv; ++j)
          right.push_back(loadTile(bn, at(bn, batch, step, plus(column, j * w)), w));
        for (int64_t i = 0; i < mr; ++i) {
          Value left = vector::BroadcastOp::create(b, loc, vector, loadTile(a, at(a, batch, plus(row, i), step), 0));
          for (int64_t j = 0; j < nv; ++j)
            next.push_back(math::FmaOp::create(b, loc, left, right[j], forOp.getRegionIterArg(i * nv + j)));
        }
        scf::YieldOp::create(b, loc, next);
      }
      for (int64_t i = 0; i < mr; ++i)
        for (int64_t j = 0; j < nv; ++j)
          storeTile(forOp.getResult(i * nv + j), c, at(c, batch, plus(row, i), plus(column, j * w)));
    });
  });
}

LogicalResult Emitter::emitDot(DotOp op) {
  TileRef left = tiles.find(op.getA())->second, right = tiles.find(op.getB())->second;
  auto resultType = op.getResult().getType();
  left = materialize(left);
  right = materialize(right);
  TileRef result = makeDestination(op.getResult(), op.getOperation(), [&](Operation *, Value value) {
    return value == op.getAcc() && value != op.getA() && value != op.getB();
  });
  TileRef acc;
  if (op.getAcc())
    acc = tiles.find(op.getAcc())->second;
  SmallVector<Value> batch;
  std::function<void(int64_t)> nest = [&](int64_t dim) {
    if (dim == resultType.getRank() - 2) {
      const TileRef *start = op.getAcc() ? &acc : nullptr;
      if (op.getTransposeB())
        dotTransposed(left, right, start, result, batch);
      else
        dotPlain(left, right, start, result, batch);
      return;
    }
    loop(resultType.getShape()[dim], 1, [&](Value i) {
      batch.push_back(i);
      nest(dim + 1);
      batch.pop_back();
    });
  };
  nest(0);
  bind(op.getResult(), result);
  return success();
}
