//===- EmitTransform.cpp - stages computed anew, some rows at a time ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A loop over blocks of rows: a thread reads its runs of 8 columns, computes, and
// writes runs of 8 columns to the same places of the result, so that in place
// nobody writes what another still has to read. 8-bit floats become pairs of f16
// when they are read; both formats are subsets of f16, so nothing is rounded.
//
//===----------------------------------------------------------------------===//

#include "Sm80.h"
#include "attn/Dialect/Tile/Transforms/SharedMemory.h"

using namespace mlir;
using namespace mlir::tile;

Value tile::widenPair(Emitter &e, Value word, int64_t half, bool e5m2) {
  auto shl = [&](Value v, int64_t by) -> Value { return LLVM::ShlOp::create(e.b, e.loc, v, e.c32(by)); };
  if (e5m2) {
    // The upper byte of an f16 is an e5m2.
    Value low = half ? e.shr(word, 8) : shl(word, 8), high = half ? word : shl(word, 16);
    return e.bitOr(e.bitAnd(low, e.c32(0xff00)), e.bitAnd(high, e.c32(0xff000000)));
  }
  if (e.target.fp8Convert) {
    Value pair = LLVM::TruncOp::create(e.b, e.loc, e.i16, half ? e.shr(word, 16) : word);
    Type halves = VectorType::get({2}, e.b.getF16Type());
    return LLVM::BitcastOp::create(e.b, e.loc, e.i32, e.intrinsic("llvm.nvvm.e4m3x2.to.f16x2.rn", pair, halves));
  }
  // e4m3 s.eeee.mmm: as s.0eeee.mmm0000000 it is an f16 with a bias of 15 instead of 7, 256 times too small, denormal
  // numbers included. The magnitude 0x7f is NaN, not 480.
  Value bytes = half ? e.shr(word, 16) : word;
  Value lanes = e.bitOr(e.bitAnd(bytes, e.c32(0xff)), shl(e.bitAnd(bytes, e.c32(0xff00)), 8));
  Value magnitude = e.bitAnd(lanes, e.c32(0x007f007f)), sign = shl(e.bitAnd(lanes, e.c32(0x00800080)), 8);
  Type f16 = e.b.getF16Type(), halves = VectorType::get({2}, f16);
  Value small = LLVM::BitcastOp::create(e.b, e.loc, halves, shl(magnitude, 7));
  Value factor = LLVM::ConstantOp::create(
      e.b, e.loc, halves, DenseElementsAttr::get(cast<ShapedType>(halves), e.b.getFloatAttr(f16, 256.0).getValue()));
  Value right = LLVM::BitcastOp::create(e.b, e.loc, e.i32, LLVM::FMulOp::create(e.b, e.loc, small, factor));
  Value overflow = e.bitAnd(e.add(magnitude, e.c32(0x00010001)), e.c32(0x00800080));
  return e.bitOr(e.bitOr(right, sign), e.mul(overflow, e.c32(0xfc)));
}

namespace {
/// Addresses of runs of 8 columns in a stage: each half a chunk of 16 bytes, or one.
class Runs {
public:
  Runs(Emitter &e, const Smem &smem, const Fragment &fragment, Value first)
      : e(e), smem(smem), fragment(fragment), shape(*SmemShape::get(smem.whole)), first(first),
        columns(fragment.getLanePart(fragment.getOffsets(0).size() - 1)) {}

  int64_t getBytes() const { return 8 * shape.elementBytes; }
  /// Of the run that begins with element `i` of the fragment.
  Value pointer(int64_t i) {
    size_t rank = fragment.getOffsets(i).size();
    Index row = e.addIndex({first, 0}, e.coordinate(fragment, i, rank - 2));
    int64_t column = fragment.getOffsets(i)[rank - 1], perPanel = shape.panelColumns / 8;
    int64_t width = 8 * columns.laneMod; // columns of the lanes together, of which `column` is a multiple
    Value lane = e.lanePart(columns);
    Value run = lane ? e.shr(lane, 3) : e.c32(0), panel;
    if (shape.panelColumns % width == 0) {
      panel = e.c32(column / shape.panelColumns);
      run = e.add(run, e.c32(column % shape.panelColumns / 8));
    } else {
      run = e.add(run, e.c32(column / 8));
      panel = e.shr(run, llvm::Log2_64(perPanel));
      run = e.bitAnd(run, e.c32(perPanel - 1));
    }
    Value at = e.materialize(row);
    Value turn = e.bitAnd(e.shr(at, shape.rowShift), e.c32(shape.chunkMask));
    int64_t runsOfChunk = 16 / getBytes();
    Value chunk = e.bitXor(runsOfChunk > 1 ? e.shr(run, 1) : run, turn);
    Value bytes = e.add(e.mul(panel, e.c32(shape.panelBytes)), e.mul(at, e.c32(shape.rowBytes)));
    bytes = e.add(bytes, e.mul(chunk, e.c32(16)));
    if (runsOfChunk > 1)
      bytes = e.add(bytes, e.mul(e.bitAnd(run, e.c32(1)), e.c32(8)));
    if (rank == 3) {
      Value group = e.materialize(e.coordinate(fragment, i, 0));
      bytes = e.add(bytes, e.mul(group, e.c32(shape.panelBytes * shape.panels)));
    }
    return e.smemPointer(e.add(e.smemOffset(smem), bytes), smem.base);
  }

private:
  Emitter &e;
  const Smem &smem;
  const Fragment &fragment;
  SmemShape shape;
  Value first;
  LanePart columns;
};
} // namespace

/// Whether the warps may not have met since another op used the memory of the transform's result.
static bool mayStillBeRead(TransformOp op) {
  for (Operation *before = op->getPrevNode(); before; before = before->getPrevNode()) {
    if (isa<ConsumerWaitOp>(before))
      return false;
    if (isa<DotOp, DotAsyncOp, LocalLoadOp, TransformOp, scf::ForOp, scf::WhileOp>(before))
      return true;
  }
  return true;
}

static LogicalResult emitTransform(Emitter &e, TransformOp op) {
  const Smem source = e.smems.find(op.getSource())->second;
  if (failed(checkPanels(op, source)))
    return failure();
  Block &body = op.getBody().front();
  Value input = body.getArgument(0), output = body.getTerminator()->getOperand(0);
  auto from = cast<RegType>(input.getType()), to = cast<RegType>(output.getType());
  bool eight = isEightBitFloat(from.getElementType());
  auto isHalf = [](Type type) { return type.isBF16() || type.isF16(); };
  if ((!eight && !isHalf(from.getElementType())) || !isHalf(to.getElementType()))
    return op.emitOpError() << "makes " << to.getElementType() << " of " << from.getElementType()
                            << ", expected bf16 or f16 of 16-bit or 8-bit floats";
  bool roles = e.kernel.getLevel() == Level::Specialized;
  if (!isa_and_nonnull<BlockedAttr>(from.getLayout()) || !source.whole.getLayout() ||
      !op.getResult().getType().getLayout() || (source.type != source.whole && !(roles && op.isInPlace())))
    return op.emitOpError() << "rewrites " << source.type << " by rows of " << from
                            << ", expected a whole stage with a layout and rows with #tile.blocked";
  Smem result = source;
  if (op.getInto()) {
    result = e.smems.find(op.getInto())->second;
  } else if (!op.isInPlace()) {
    auto offset = op->getAttrOfType<IntegerAttr>(kSharedOffset);
    if (!offset)
      return op.emitOpError() << "has no '" << kSharedOffset << "', run tile-allocate-shared first";
    result = Smem();
    result.type = result.whole = op.getResult().getType();
    result.base = offset.getInt();
  }
  for (const Smem *smem : {&source, &std::as_const(result)})
    if (failed(SmemShape::get(smem->whole, [&] { return op.emitOpError(); })))
      return failure();

  bool alone = !roles && sm80::isWarpPrivate(e, source.whole);
  auto meet = [&]() { alone ? sm80::Leaf(e.b, e.loc).warpBarrier() : e.sync(); };
  if (!op.isInPlace() && mayStillBeRead(op))
    meet();
  const Fragment fragment = e.fragment(from);
  SmallVector<LanePart> parts;
  for (size_t d = 0; d < fragment.getOffsets(0).size(); ++d)
    parts.push_back(fragment.getLanePart(d));
  e.hideLaneParts(parts);
  // Lanes and warps that hold copies stay away: in place they would compute of what has been written.
  Value mine;
  auto also = [&](Value c) { mine = mine ? e.bitAnd(mine, c) : c; };
  if (fragment.getLanes() < 32)
    also(e.compare(LLVM::ICmpPredicate::ult, e.group.lane, e.c32(fragment.getLanes())));
  if (fragment.getWarps() < e.group.warps)
    also(e.compare(LLVM::ICmpPredicate::ult, e.group.warp, e.c32(fragment.getWarps())));

  ArrayRef<int64_t> shape = source.type.getShape();
  int64_t extent = shape[shape.size() - 2], step = op.getRows();
  Block *header = e.newBlock({e.i32}), *work = e.newBlock(), *exit = new Block();
  LLVM::BrOp::create(e.b, e.loc, e.c32(0), header);
  e.enter(header);
  Value first = header->getArgument(0);
  Value more = e.compare(LLVM::ICmpPredicate::ult, first, e.c32(extent));
  LLVM::CondBrOp::create(e.b, e.loc, mine ? e.bitAnd(more, mine) : more, work, ValueRange(), exit, ValueRange());
  e.enter(work);
  e.indices[body.getArgument(1)] = {first, 0};
  Regs loaded;
  Runs places(e, source, fragment, first);
  int64_t words = places.getBytes() / 4;
  for (int64_t i = 0; i < fragment.getNumElements(); i += 8) {
    Type vector = VectorType::get({words}, e.i32);
    Value run = LLVM::LoadOp::create(e.b, e.loc, vector, places.pointer(i), places.getBytes());
    for (int64_t w = 0; w < 4; ++w) {
      Value word = LLVM::ExtractElementOp::create(e.b, e.loc, run, e.c32(eight ? w / 2 : w));
      loaded.push_back(eight ? widenPair(e, word, w % 2, isa<Float8E5M2Type>(from.getElementType())) : word);
    }
  }
  e.regs[input] = loaded;
  LogicalResult done = e.emitBlock(body);
  if (succeeded(done)) {
    const Regs values = e.reg(output);
    const Fragment &written = e.fragment(to);
    Runs targets(e, result, written, first);
    for (int64_t i = 0; i < written.getNumElements(); i += 8) {
      ArrayRef<Value> run = ArrayRef<Value>(values).slice(i / 2, 4);
      if (op.isInPlace() && run == ArrayRef<Value>(loaded).slice(i / 2, 4))
        continue; // columns that stay as they are
      Type vector = VectorType::get({4}, e.i32);
      Value out = LLVM::PoisonOp::create(e.b, e.loc, vector);
      for (auto [w, word] : llvm::enumerate(run))
        out = LLVM::InsertElementOp::create(e.b, e.loc, out, word, e.c32(w));
      LLVM::StoreOp::create(e.b, e.loc, out, targets.pointer(i), 16);
    }
    branchBack(e, header, e.add(first, e.c32(step)));
  }
  (e.b.getInsertionBlock()->getParent())->push_back(exit);
  e.enter(exit);
  e.restoreLaneParts();
  if (roles) // warpgroup products and bulk copies read it
    NVVM::FenceProxyOp::create(e.b, e.loc, NVVM::ProxyKind::async_shared,
                               NVVM::SharedSpaceAttr::get(e.context, NVVM::SharedSpace::shared_cta));
  meet();
  e.smems[op.getResult()] = result;
  return done;
}

void tile::populateTransform(Emitter &e) { e.on<TransformOp>(emitTransform); }
