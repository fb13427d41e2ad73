//===- Sm90Wgmma.cpp - matrix products of a warpgroup ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A dot_async is one wgmma per 16 columns of its contraction and a group of its
// own. Registers in flight are ordered by data flow: the fence in front of a
// batch and the wait behind it take the registers in and give them out again,
// so that nothing can be moved over them. Descriptors: PTX ISA, matrix
// descriptor; tiles stand in panels of 128 (64, 32) bytes a row.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"
#include "attn/Dialect/Tile/Transforms/SharedMemory.h"

using namespace mlir;
using namespace mlir::tile;

/// Passes f32 and i32 registers through an instruction that has no operands.
static void tie(Emitter &e, StringRef instruction, MutableArrayRef<Value> floats, MutableArrayRef<Value> ints) {
  SmallVector<Value> operands;
  SmallVector<Type> types;
  std::string constraints;
  llvm::raw_string_ostream os(constraints);
  for (size_t i = 0; i < floats.size(); ++i)
    os << (i ? "," : "") << "=f";
  for (size_t i = 0; i < ints.size(); ++i)
    os << (i + floats.size() ? "," : "") << "=r";
  for (size_t i = 0, n = floats.size() + ints.size(); i < n; ++i)
    os << "," << i;
  for (Value v : floats)
    operands.push_back(v), types.push_back(e.f32);
  for (Value v : ints)
    operands.push_back(v), types.push_back(e.i32);
  if (operands.empty()) {
    e.ptx(instruction, "", {}, {});
    return;
  }
  Regs out = e.ptx(instruction, constraints, operands, types);
  for (size_t i = 0; i < floats.size(); ++i)
    floats[i] = out[i];
  for (size_t i = 0; i < ints.size(); ++i)
    ints[i] = out[floats.size() + i];
}

/// The fence in front of a batch of products (those up to the next await). It takes along accumulators and A registers
/// that only one product uses; those with other uses are not written while they are read.
static void fenceBatch(Emitter &e, DotAsyncOp first) {
  SmallVector<Value> tiles;
  for (Operation *op = first; op && !isa<AwaitOp>(op) && !op->hasTrait<OpTrait::IsTerminator>();
       op = op->getNextNode()) {
    auto dot = dyn_cast<DotAsyncOp>(op);
    if (!dot)
      continue;
    for (Value v : {dot.getAcc(), dot.getA()}) {
      if (!v || !isa<RegType>(v.getType()) || !v.hasOneUse() || !e.regs.count(v))
        continue;
      // Written before the batch and in its block: what comes from outside a loop lives on for the next round.
      Operation *def = v.getDefiningOp();
      Block *home = def ? def->getBlock() : cast<BlockArgument>(v).getOwner();
      if (home != first->getBlock() || (def && !def->isBeforeInBlock(first)))
        continue;
      tiles.push_back(v);
    }
  }
  SmallVector<Value> floats, ints;
  for (Value v : tiles)
    for (Value r : e.reg(v))
      (r.getType().isF32() ? floats : ints).push_back(r);
  tie(e, "wgmma.fence.sync.aligned;", floats, ints);
  size_t f = 0, i = 0;
  for (Value v : tiles)
    for (Value &r : e.reg(v))
      r = r.getType().isF32() ? floats[f++] : ints[i++];
}

/// Constant part of a descriptor: swizzle, and the strides between core matrices in 16 bytes.
static int64_t descriptorConstant(int64_t leading, int64_t strideBytes, int64_t rowBytes) {
  int64_t mode = rowBytes == 128 ? 1 : rowBytes == 64 ? 2 : 3;
  return static_cast<int64_t>(static_cast<uint64_t>(mode) << 62 | static_cast<uint64_t>(strideBytes >> 4) << 32 |
                              static_cast<uint64_t>(leading >> 4) << 16);
}

/// Descriptor (i64) of a stage's first element. Fixed parts are made at the role's entry.
static Value makeDescriptor(Emitter &e, const Smem &s, int64_t constant) {
  // Stages are multiples of 16 bytes and addresses below 256 KiB: adding to the low field cannot reach the next.
  std::pair<Value, int64_t> key = {s.pipeline, constant ^ (s.base << 20)};
  Value base = s.pipeline ? e.roleValues.lookup(key) : Value();
  if (!base) {
    OpBuilder::InsertPoint here;
    if (s.pipeline)
      here = e.toEntry(e.group.entry);
    Value address = e.add(e.smemStart(), e.c32(s.base));
    Value low = LLVM::ZExtOp::create(e.b, e.loc, e.i64, e.bitAnd(e.shr(address, 4), e.c32(0x3FFF)));
    base = e.bitOr(low, e.c64(constant));
    if (s.pipeline) {
      e.b.restoreInsertionPoint(here);
      e.forgetLocal();
      e.roleValues[key] = base;
    }
  }
  if (s.stage || s.rows) {
    Value offset = e.shr(e.smemOffset(s), 4);
    base = e.add(base, LLVM::ZExtOp::create(e.b, e.loc, e.i64, offset));
  }
  return base;
}

namespace {
/// Where the 16-column chunk k of an operand begins, in bytes from the descriptor's start.
struct Operand {
  Value descriptor;
  SmallVector<int64_t> chunks;
  bool transposed = false;
};
} // namespace

/// Bytes from a panel to the next and from 8 rows to the next 8.
static std::pair<int64_t, int64_t> getStrides(const Smem &s, const SmemShape &shape) {
  int64_t group = 8 * shape.rowBytes;
  if (s.rowGroups)
    return {group, shape.panels * group};
  return {shape.panelBytes, group};
}

/// Operand whose contraction runs along the columns (rows are the other dimension).
static Operand alongColumns(Emitter &e, const Smem &s, const SmemShape &shape, int64_t elementBytes) {
  Operand o;
  auto [panel, group] = getStrides(s, shape);
  o.descriptor = makeDescriptor(e, s, descriptorConstant(16, group, shape.rowBytes));
  int64_t perPanel = shape.rowBytes / 32;
  for (int64_t k = 0, n = s.type.getShape()[1] * elementBytes / 32; k < n; ++k)
    o.chunks.push_back(k / perPanel * panel + k % perPanel * 32);
  return o;
}
/// Operand whose contraction runs along the rows: the tensor core transposes 16-bit elements.
static Operand alongRows(Emitter &e, const Smem &s, const SmemShape &shape) {
  Operand o;
  o.transposed = true;
  auto [panel, group] = getStrides(s, shape);
  o.descriptor = makeDescriptor(e, s, descriptorConstant(panel, group, shape.rowBytes));
  for (int64_t k = 0, n = s.type.getShape()[0] / 16; k < n; ++k)
    o.chunks.push_back(k * 2 * group);
  return o;
}

/// The products of 16 columns each that add up in one set of accumulators: one asm statement, since registers that
/// enter and leave one for each product would be most of what LLVM has to work on. The first product overwrites when
/// there is no `accumulator`. `a` holds four registers or one descriptor for each product; b's descriptors are at
/// `bSteps` from `b`, added where they are used: ptxas keeps that place, and registers with it.
static Regs wgmmaChain(Emitter &e, int64_t n, Type element, const Regs *accumulator, ArrayRef<Value> a, Value b,
                       ArrayRef<int64_t> bSteps, bool transposedB) {
  int64_t count = n / 2, perProduct = static_cast<int64_t>(a.size() / bSteps.size());
  bool fromRegisters = perProduct == 4;
  std::string outputs, constraints, code = "{ .reg .pred p; setp.ne.b32 p, 1, 0; .reg .b64 b; ";
  llvm::raw_string_ostream out(outputs), con(constraints), text(code);
  SmallVector<Value> operands;
  // Early clobber: later products read operands after the first one has written.
  for (int64_t i = 0; i < count; ++i) {
    out << (i ? "," : "") << "$" << i;
    con << (i ? ",=&f" : "=&f");
  }
  if (accumulator) {
    for (int64_t i = 0; i < count; ++i)
      con << "," << i;
    llvm::append_range(operands, *accumulator);
  } else {
    text << ".reg .pred q; setp.ne.b32 q, 0, 0; ";
  }
  int64_t at = count + static_cast<int64_t>(operands.size()), bAt = at + static_cast<int64_t>(a.size());
  for (size_t i = 0; i < a.size(); ++i)
    con << (fromRegisters ? ",r" : ",l");
  con << ",l";
  llvm::append_range(operands, a);
  operands.push_back(b);
  StringRef type = element.isBF16() ? "bf16" : "f16";
  for (auto [i, step] : llvm::enumerate(bSteps)) {
    text << "add.s64 b, $" << bAt << ", " << step << "; wgmma.mma_async.sync.aligned.m64n" << n << "k16.f32." << type
         << "." << type << " {" << outputs << "}, ";
    for (int64_t j = 0; j < perProduct; ++j)
      text << (j ? ",$" : fromRegisters ? "{$" : "$") << at++;
    text << (fromRegisters ? "}, b, " : ", b, ") << (i || accumulator ? "p" : "q") << ", 1, 1, "
         << (fromRegisters ? "" : "0, ") << (transposedB ? "1; " : "0; ");
  }
  text << "}";
  return e.ptx(code, constraints, operands, SmallVector<Type>(count, e.f32));
}

static LogicalResult emitDotAsync(Emitter &e, DotAsyncOp op) {
  RegType type = op.getResult().getType().getReg();
  auto mma = dyn_cast<MmaAttr>(type.getLayout());
  if (!mma || mma.getWarps() != ArrayRef<int64_t>({4, 1}) || type.getRank() != 2 || !type.getElementType().isF32())
    return op.emitOpError() << "has result " << type << ", expected f32 of rank 2 in #tile.mma<warps = [4, 1]>";
  if (e.group.warps != 4)
    return op.emitOpError() << "is run by " << e.group.warps << " warps, expected a warpgroup of 4";
  auto bSmem = dyn_cast<SmemType>(op.getB().getType());
  if (!bSmem || bSmem.getRank() != 2)
    return op.emitOpError() << "has operand 'b' in registers or of rank other than 2, expected shared memory of rank 2";
  Type element = bSmem.getElementType();
  if (!element.isBF16() && !element.isF16())
    return op.emitOpError() << "multiplies elements of type " << element << ", expected bf16 or f16";
  const Smem b = e.smems.find(op.getB())->second;
  FailureOr<SmemShape> bShape = SmemShape::get(b.whole, [&]() { return op.emitOpError(); });
  if (failed(bShape))
    return failure();
  assert(b.whole.getLayout() && "R5 refuses shared memory without layout beside a result with one");
  int64_t m = type.getShape()[0], n = type.getShape()[1];
  int64_t k = bSmem.getShape()[op.getTransposeB() ? 1 : 0];
  if (m % 64 || n % 8 || n > 256 || k % 16 || bSmem.getShape()[op.getTransposeB() ? 0 : 1] != n)
    return op.emitOpError() << "is " << m << " x " << n << " x " << k
                            << ", expected rows in 64s, at most 256 columns in 8s and a contraction in 16s";

  if (e.group.turns && op->hasAttr(kTakesTurn))
    e.takeTurn();
  if (e.inFlight.empty() || e.fenceNeeded) {
    fenceBatch(e, op);
    e.fenceNeeded = false;
  }
  Operand right = op.getTransposeB() ? alongColumns(e, b, *bShape, 2) : alongRows(e, b, *bShape);
  Operand left;
  const Regs *aRegs = nullptr;
  int64_t aRowStep = 0;
  if (auto aSmem = dyn_cast<SmemType>(op.getA().getType())) {
    const Smem a = e.smems.find(op.getA())->second;
    FailureOr<SmemShape> aShape = SmemShape::get(a.whole, [&]() { return op.emitOpError(); });
    if (failed(aShape))
      return failure();
    if (aSmem.getRank() != 2 || aSmem.getShape() != ArrayRef<int64_t>({m, k}) || aSmem.getElementType() != element ||
        !a.whole.getLayout())
      return op.emitOpError() << "has operand 'a' " << aSmem << ", expected " << m << " x " << k << " elements of "
                              << element << " with #tile.swizzle";
    if (failed(checkPanels(op, a))) // its rows are cut into tiles of 64
      return failure();
    left = alongColumns(e, a, *aShape, 2);
    left.chunks.truncate(k / 16);
    aRowStep = 64 * aShape->rowBytes;
  } else {
    auto aType = cast<RegType>(op.getA().getType());
    auto operand = dyn_cast<OperandAttr>(aType.getLayout());
    bool packed = (operand && operand.getKind() == OperandKind::A && operand.getParent() == type.getLayout()) ||
                  aType.getLayout() == type.getLayout();
    if (!packed || aType.getShape() != ArrayRef<int64_t>({m, k}) || aType.getElementType() != element)
      return op.emitOpError() << "has operand 'a' " << aType << ", expected " << m << " x " << k << " elements of "
                              << element << " in #tile.operand<a> of the result's layout";
    aRegs = &e.reg(op.getA());
  }

  Regs result;
  if (op.getAcc()) {
    if (isa<PendingType>(op.getAcc().getType())) {
      auto it = llvm::find_if(e.inFlight, [&](const auto &f) { return f.pending == op.getAcc(); });
      if (it == e.inFlight.end())
        return op.emitOpError() << "adds to an accumulator that has landed";
      result = it->accumulators;
      e.inFlight.erase(it);
    } else {
      result = e.reg(op.getAcc());
    }
  }
  Regs all;
  int64_t perTile = n / 2;
  for (int64_t tile = 0; tile < m / 64; ++tile) {
    Regs accumulator;
    if (!result.empty())
      accumulator.assign(result.begin() + tile * perTile, result.begin() + (tile + 1) * perTile);
    SmallVector<Value> a;
    SmallVector<int64_t> bSteps;
    for (int64_t chunk = 0; chunk < k / 16; ++chunk) {
      if (aRegs)
        llvm::append_range(a, ArrayRef<Value>(*aRegs).slice((tile * (k / 16) + chunk) * 4, 4));
      else
        a.push_back(e.add(left.descriptor, e.c64((left.chunks[chunk] + tile * aRowStep) >> 4)));
      bSteps.push_back(right.chunks[chunk] >> 4);
    }
    accumulator = wgmmaChain(e, n, element, accumulator.empty() ? nullptr : &accumulator, a, right.descriptor, bSteps,
                             right.transposed);
    llvm::append_range(all, accumulator);
  }
  NVVM::WgmmaGroupSyncAlignedOp::create(e.b, e.loc);
  e.inFlight.push_back({op.getResult(), all});
  if (e.group.turns && op->hasAttr(kPassesTurn))
    e.passTurn();
  return success();
}

/// Holds what follows behind `values`: a store that never happens, on a NaN that no sum can be, which ptxas may neither
/// drop nor move over a wait.
static void holdBehind(Emitter &e, ArrayRef<Value> values) {
  std::string text = "{ .reg .pred p; .reg .b32 b; mov.b32 b, $0; setp.eq.u32 p, b, 0x7fffdead; ";
  for (size_t i = 1; i < values.size(); ++i)
    text += "mov.b32 b, $" + std::to_string(i) + "; setp.eq.and.u32 p, b, 0x7fffdead, p; ";
  text += "@p st.shared.b32 [$" + std::to_string(values.size()) + "], b; }";
  Regs operands(values);
  operands.push_back(e.smemStart());
  NVVM::InlinePtxOp::create(e.b, e.loc, TypeRange(), operands, ValueRange(), e.b.getStringAttr(text), Value());
}

static LogicalResult emitAwait(Emitter &e, AwaitOp op) {
  auto it = llvm::find_if(e.inFlight, [&](const auto &f) { return f.pending == op.getPending(); });
  if (it == e.inFlight.end())
    return op.emitOpError() << "waits for an accumulator that is not in flight in this block";
  if (it != e.inFlight.begin())
    return op.emitOpError() << "waits out of order: accumulators land in the order of their products";
  Regs accumulators = it->accumulators;
  e.inFlight.erase(it);
  if (op.getAfter()) {
    Regs firsts;
    for (const Regs &row : e.partials.lookup(op.getAfter()))
      firsts.push_back(row[std::min<int64_t>(op.getTerms(), row.size()) - 1]);
    holdBehind(e, firsts);
  }
  tie(e, "wgmma.wait_group.sync.aligned " + std::to_string(e.inFlight.size()) + ";", accumulators, {});
  e.fenceNeeded = true;
  e.regs[op.getResult()] = accumulators;
  return success();
}

//===----------------------------------------------------------------------===//
// Fragments and shared memory: ldmatrix, stmatrix
//===----------------------------------------------------------------------===//

/// Checks a tile that goes through ldmatrix/stmatrix x4: 16 rows x 16 columns of 16-bit elements at a time.
static LogicalResult checkMatrix(Operation *op, RegType reg, const Smem &s) {
  auto operand = dyn_cast<OperandAttr>(reg.getLayout());
  auto mma = dyn_cast<MmaAttr>(operand ? operand.getParent() : reg.getLayout());
  bool rows = mma && (!operand || operand.getKind() == OperandKind::A) && mma.getWarps().size() == 2;
  if (!rows || reg.getRank() != 2 || reg.getElementType().getIntOrFloatBitWidth() != 16 ||
      reg.getShape() != s.type.getShape() || reg.getElementType() != s.type.getElementType() ||
      reg.getShape()[1] % 16 || !s.whole.getLayout())
    return op->emitOpError()
           << "moves " << reg << " and " << s.type
           << ", expected the same 16-bit tile in an accumulator or A layout and in swizzled shared memory";
  return success();
}

template <typename Fn>
static LogicalResult forMatrices(Emitter &e, Operation *op, RegType reg, const Smem &s, Fn body) {
  if (failed(checkMatrix(op, reg, s)) || failed(checkPanels(op, s)))
    return failure();
  auto operand = dyn_cast<OperandAttr>(reg.getLayout());
  auto mma = cast<MmaAttr>(operand ? operand.getParent() : reg.getLayout());
  int64_t warps = mma.getWarps()[0];
  FailureOr<SmemShape> shape = SmemShape::get(s.whole, [&]() { return op->emitOpError(); });
  if (failed(shape))
    return failure();
  // Lane l points at row l mod 16 and at the left or right 8 columns (l / 16).
  LanePart rowPart{1, 16, 1, 1, warps, warps > 1 ? 16 : 0}, columnPart{16, 2, 1, 1, 1, 0};
  Value row = e.lanePart(rowPart), column = e.lanePart(columnPart);
  int64_t columns = reg.getShape()[1], at = 0;
  for (int64_t r = 0; r < reg.getShape()[0]; r += 16 * warps)
    for (int64_t c = 0; c < columns; c += 16, at += 4)
      body(e.smemPointer(smemAddress(e, s, {row, r}, {column, c / 8})), at);
  return success();
}

static LogicalResult emitLocalLoad(Emitter &e, LocalLoadOp op) {
  const Smem s = e.smems.find(op.getSource())->second;
  RegType type = op.getResult().getType();
  Regs out;
  auto four = LLVM::LLVMStructType::getLiteral(e.context, SmallVector<Type>(4, e.i32));
  auto size = NVVM::LdStMatrixShapeAttr::get(e.context, 8, 8);
  auto body = [&](Value pointer, int64_t) {
    Value v = NVVM::LdMatrixOp::create(e.b, e.loc, four, pointer, 4, NVVM::MMALayout::row, size,
                                       NVVM::LdStMatrixEltType::B16);
    for (int64_t i = 0; i < 4; ++i)
      out.push_back(LLVM::ExtractValueOp::create(e.b, e.loc, v, i));
  };
  if (failed(forMatrices(e, op, type, s, body)))
    return failure();
  e.regs[op.getResult()] = out;
  return success();
}

static LogicalResult emitLocalStore(Emitter &e, LocalStoreOp op) {
  const Smem s = e.smems.find(op.getDest())->second;
  const Regs values = e.reg(op.getValue());
  auto size = NVVM::LdStMatrixShapeAttr::get(e.context, 8, 8);
  auto body = [&](Value pointer, int64_t at) {
    NVVM::StMatrixOp::create(e.b, e.loc, pointer, ValueRange(values).slice(at, 4), NVVM::MMALayout::row, size,
                             NVVM::LdStMatrixEltType::B16);
  };
  return forMatrices(e, op, op.getValue().getType(), s, body);
}

/// Zeroes rows of a stage that a tensor copy has filled; ends with a fence towards the tensor cores and a meeting of
/// the group, so that the products that follow see the zeros.
static LogicalResult emitFillRows(Emitter &e, FillRowsOp op) {
  const Smem s = e.smems.find(op.getDest())->second;
  FailureOr<SmemShape> shape = SmemShape::get(s.whole, [&]() { return op.emitOpError(); });
  if (failed(shape))
    return failure();
  if (s.type != s.whole || s.type.getRank() != 2)
    return op.emitOpError() << "fills part of a stage or one of rank other than 2";
  Value first = e.narrow(e.index(op.getFirst()));
  int64_t chunks = shape->panels * shape->panelBytes / 16, threads = 32 * e.group.warps;
  int64_t perRow = shape->rowBytes / 16;
  Value thread = e.add(e.mul(e.group.warp, e.c32(32)), e.group.lane);
  // Whole rows are zeroed, so the permutation of their chunks does not matter.
  Block *header = e.newBlock({e.i32}), *body = e.newBlock(), *store = e.newBlock(), *next = e.newBlock(),
        *exit = e.newBlock();
  LLVM::BrOp::create(e.b, e.loc, ValueRange(thread), header);
  e.enter(header);
  Value at = header->getArgument(0);
  LLVM::CondBrOp::create(e.b, e.loc, e.compare(LLVM::ICmpPredicate::ult, at, e.c32(chunks)), body, ValueRange(), exit,
                         ValueRange());
  e.enter(body);
  Value row = LLVM::UDivOp::create(e.b, e.loc, at, e.c32(perRow)), inPanel;
  if (s.rowGroups) {
    Value group = LLVM::UDivOp::create(e.b, e.loc, row, e.c32(8 * shape->panels));
    inPanel = e.add(e.mul(group, e.c32(8)), e.bitAnd(row, e.c32(7)));
  } else {
    inPanel = LLVM::URemOp::create(e.b, e.loc, row, e.c32(shape->rows));
  }
  LLVM::CondBrOp::create(e.b, e.loc, e.compare(LLVM::ICmpPredicate::sge, inPanel, first), store, ValueRange(), next,
                         ValueRange());
  e.enter(store);
  auto four = VectorType::get({4}, e.i32);
  Value zero = LLVM::ConstantOp::create(e.b, e.loc, four, DenseElementsAttr::get(four, e.b.getI32IntegerAttr(0)));
  LLVM::StoreOp::create(e.b, e.loc, zero, e.smemPointer(e.add(e.smemOffset(s), e.mul(at, e.c32(16))), s.base), 16);
  LLVM::BrOp::create(e.b, e.loc, ValueRange(), next);
  e.enter(next);
  LLVM::BrOp::create(e.b, e.loc, ValueRange(e.add(at, e.c32(threads))), header);
  e.enter(exit);
  NVVM::FenceProxyOp::create(e.b, e.loc, NVVM::ProxyKind::async_shared,
                             NVVM::SharedSpaceAttr::get(e.context, NVVM::SharedSpace::shared_cta));
  e.sync();
  return success();
}

void tile::populateSm90Wgmma(Emitter &e) {
  e.on<DotAsyncOp>(emitDotAsync);
  e.on<AwaitOp>(emitAwait);
  e.on<LocalLoadOp>(emitLocalLoad);
  e.on<LocalStoreOp>(emitLocalStore);
  e.on<FillRowsOp>(emitFillRows);
}
