//===- AssignLayouts.cpp - a layout for every tile ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every register tile is a part of one "root" layout: the accumulator layout of
// the kernel or one of its B operands. A Place says which root and which of its
// dimensions the tile spans. Places flow from the dots through maps, reductions
// and loops; what they do not reach takes the accumulator layout by rank.
//
//===----------------------------------------------------------------------===//

#include "Kernels.h"
#include "attn/Dialect/Tile/IR/Layout.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/SharedMemory.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::tile {
#define GEN_PASS_DEF_TILEASSIGNLAYOUTSPASS
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace mlir::tile

using namespace mlir;
using namespace mlir::tile;

namespace {

/// Where a tile lives: the dimensions `dims` of layout `root`, the others reduced away.
struct Place {
  Attribute root;
  SmallVector<int64_t, 3> dims;
  bool operator==(const Place &other) const { return root == other.root && dims == other.dims; }
  bool operator!=(const Place &other) const { return !(*this == other); }
};

class Assigner {
public:
  Assigner(KernelOp kernel, attn::ConfigAttr config) : kernel(kernel), config(config) {}

  LogicalResult run();
  /// Conversions made, in order.
  SmallVector<ConvertLayoutOp> conversions;

private:
  LogicalResult checkInput();
  LogicalResult chooseRoot();
  LogicalResult anchorDot(DotOp dot);
  void anchorTransform(TransformOp transform);
  void assign(Value value, const Place &place);
  void assignTied(Value value, const Place &place);
  void propagate(Operation *op);
  void drain();
  void defaults();
  /// What `op` wants its register operand `operand` to be; nullopt: anything.
  std::optional<Place> demand(OpOperand &operand);
  void resolve(Operation *op);
  void markOperandsA();
  LogicalResult setTypes();
  Attribute layoutOf(const Place &place, bool isA);
  Attribute swizzleOf(SmemType type);

  KernelOp kernel;
  attn::ConfigAttr config;
  MmaAttr mma;
  DenseMap<Value, Place> places;
  llvm::SetVector<Operation *> worklist;
  DenseSet<Value> operandA;
};

} // namespace

static bool isReg(Value value) { return isa<RegType>(value.getType()); }
static int64_t rank(Value value) { return cast<RegType>(value.getType()).getRank(); }

/// The values that hold the same tile as `value` because control flow hands it on: iteration arguments, yields,
/// results.
static SmallVector<Value> tiedValues(Value value) {
  SmallVector<Value> tied;
  auto tieFor = [&](scf::ForOp loop, unsigned i) {
    tied.append({loop.getInitArgs()[i], loop.getRegionIterArg(i), loop.getResult(i)});
    tied.push_back(cast<scf::YieldOp>(loop.getBody()->getTerminator()).getOperand(i));
  };
  auto tieIf = [&](scf::IfOp branch, unsigned i) {
    tied.push_back(branch.getResult(i));
    tied.push_back(branch.thenYield().getOperand(i));
    tied.push_back(branch.elseYield().getOperand(i));
  };
  auto tieBefore = [&](scf::WhileOp loop, unsigned i) {
    tied.append({loop.getInits()[i], loop.getBeforeArguments()[i], loop.getYieldOp().getOperand(i)});
  };
  auto tieAfter = [&](scf::WhileOp loop, unsigned i) {
    tied.append({loop.getResult(i), loop.getAfterArguments()[i], loop.getConditionOp().getArgs()[i]});
  };
  if (auto arg = dyn_cast<BlockArgument>(value)) {
    Operation *parent = arg.getOwner()->getParentOp();
    if (auto loop = dyn_cast<scf::ForOp>(parent)) {
      if (arg.getArgNumber() > 0)
        tieFor(loop, arg.getArgNumber() - 1);
    } else if (auto loop = dyn_cast<scf::WhileOp>(parent)) {
      if (arg.getOwner() == loop.getBeforeBody())
        tieBefore(loop, arg.getArgNumber());
      else
        tieAfter(loop, arg.getArgNumber());
    }
  } else {
    unsigned i = cast<OpResult>(value).getResultNumber();
    if (auto loop = value.getDefiningOp<scf::ForOp>())
      tieFor(loop, i);
    else if (auto branch = value.getDefiningOp<scf::IfOp>())
      tieIf(branch, i);
    else if (auto loop = value.getDefiningOp<scf::WhileOp>())
      tieAfter(loop, i);
  }
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    unsigned i = use.getOperandNumber();
    if (auto loop = dyn_cast<scf::ForOp>(user)) {
      if (i >= loop.getNumControlOperands())
        tieFor(loop, i - loop.getNumControlOperands());
    } else if (auto loop = dyn_cast<scf::WhileOp>(user)) {
      tieBefore(loop, i);
    } else if (isa<scf::ConditionOp>(user)) {
      if (i > 0)
        tieAfter(cast<scf::WhileOp>(user->getParentOp()), i - 1);
    } else if (isa<scf::YieldOp>(user)) {
      if (auto loop = dyn_cast<scf::ForOp>(user->getParentOp()))
        tieFor(loop, i);
      else if (auto branch = dyn_cast<scf::IfOp>(user->getParentOp()))
        tieIf(branch, i);
      else if (auto loop = dyn_cast<scf::WhileOp>(user->getParentOp()))
        tieBefore(loop, i);
    }
  }
  return tied;
}

//===----------------------------------------------------------------------===//
// Anchors
//===----------------------------------------------------------------------===//

LogicalResult Assigner::checkInput() {
  WalkResult result = kernel.walk([&](Operation *op) {
    for (Value value : op->getResults()) {
      Attribute layout;
      if (auto reg = dyn_cast<RegType>(value.getType()))
        layout = reg.getLayout();
      if (auto smem = dyn_cast<SmemType>(value.getType()))
        layout = smem.getLayout();
      if (layout) {
        op->emitOpError() << "has a layout already, expected a kernel without layouts";
        return WalkResult::interrupt();
      }
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// The accumulator layout of the kernel, from the shape of its first dot (else of its largest tile) and the warps.
LogicalResult Assigner::chooseRoot() {
  RegType shape;
  bool fromDot = false;
  kernel.walk([&](Operation *op) {
    bool dot = isa<DotOp>(op);
    for (Value value : op->getResults()) {
      auto reg = dyn_cast<RegType>(value.getType());
      if (!reg || reg.getRank() < 2)
        continue;
      if (!shape || reg.getRank() > shape.getRank() || (dot && !fromDot && reg.getRank() == shape.getRank())) {
        shape = reg;
        fromDot = dot;
      }
    }
  });
  SmallVector<int64_t> warps = {std::max<int64_t>(1, config.getWarps()), 1};
  if (!shape) { // only rows: as many warps as there are
    mma = MmaAttr::get(kernel.getContext(), warps);
    return success();
  }
  int64_t rows = shape.getShape()[shape.getRank() - 2];
  if (rows % 16)
    return kernel.emitOpError() << "has tiles of " << rows
                                << " rows, expected a multiple of 16: choose another 'rows' in the config";
  // Hopper: `consumers` warpgroups of four warps.
  int64_t left = config.getConsumers() > 0 ? 4 * config.getConsumers() : std::max<int64_t>(1, config.getWarps());
  if (shape.getRank() == 3) {
    int64_t groups = config.getGroups();
    if (shape.getShape()[0] != groups)
      return kernel.emitOpError() << "has tiles with a leading dimension of " << shape.getShape()[0]
                                  << ", expected the config's groups, " << groups;
    if (left % groups)
      return kernel.emitOpError() << "has " << left << " warps for " << groups << " key groups, expected a multiple";
    left /= groups;
    warps = {groups, 1, 1};
  } else {
    warps = {1, 1};
  }
  // The largest number of warps that divides both; the others repeat the work of the first.
  int64_t along = left;
  while (along > 1 && (left % along || (rows / 16) % along))
    --along;
  warps[warps.size() - 2] = along;
  mma = MmaAttr::get(kernel.getContext(), warps);
  return success();
}

LogicalResult Assigner::anchorDot(DotOp dot) {
  int64_t full = mma.getWarps().size();
  auto result = cast<RegType>(dot.getResult().getType());
  if (result.getRank() != full)
    return dot.emitOpError() << "has rank " << result.getRank() << ", expected rank " << full
                             << " as the kernel's other tiles";
  ArrayRef<int64_t> shape = result.getShape();
  if (shape[full - 2] % (16 * mma.getWarps()[full - 2]))
    return dot.emitOpError() << "has " << shape[full - 2] << " rows, expected a multiple of "
                             << 16 * mma.getWarps()[full - 2] << " (16 rows a warp)";
  if (shape[full - 1] % 8)
    return dot.emitOpError() << "has " << shape[full - 1] << " columns, expected a multiple of 8";
  ArrayRef<int64_t> a = isReg(dot.getA()) ? cast<RegType>(dot.getA().getType()).getShape()
                                          : cast<SmemType>(dot.getA().getType()).getShape();
  if (a.back() % 16)
    return dot.emitOpError() << "contracts over " << a.back()
                             << " elements, expected a multiple of 16: pad the tile with zeros";
  auto trailing = [&](Value value) {
    SmallVector<int64_t, 3> dims;
    for (int64_t d = full - rank(value); d < full; ++d)
      dims.push_back(d);
    return dims;
  };
  assign(dot.getResult(), {mma, trailing(dot.getResult())});
  if (dot.getAcc())
    assign(dot.getAcc(), {mma, trailing(dot.getAcc())});
  if (isReg(dot.getA()))
    assign(dot.getA(), {mma, trailing(dot.getA())});
  if (isReg(dot.getB())) {
    auto kind = dot.getTransposeB() ? OperandKind::BT : OperandKind::B;
    assign(dot.getB(), {OperandAttr::get(kernel.getContext(), kind, mma), trailing(dot.getB())});
  }
  return success();
}

/// All that a transform computes has the layout of the rows that it gets.
void Assigner::anchorTransform(TransformOp transform) {
  Value rows = transform.getBody().getArgument(0);
  ArrayRef<int64_t> shape = cast<RegType>(rows.getType()).getShape();
  int64_t columns = shape.back(), groups = shape.size() == 3 ? shape[0] : 1;
  transform.getBody().walk([&](Operation *op) { columns = getColumnsOfCut(op, columns); });
  int64_t warps = config.getConsumers() > 0 ? kTransformWarps : std::max<int64_t>(1, config.getWarps() / groups);
  assign(rows, {getBlockedLayout(kernel.getContext(), shape, columns, warps),
                llvm::to_vector_of<int64_t, 3>(llvm::seq<int64_t>(0, shape.size()))});
}

//===----------------------------------------------------------------------===//
// Data flow
//===----------------------------------------------------------------------===//

void Assigner::assign(Value value, const Place &place) {
  if (!isReg(value) || rank(value) != static_cast<int64_t>(place.dims.size()) ||
      !places.try_emplace(value, place).second)
    return;
  if (Operation *def = value.getDefiningOp())
    worklist.insert(def);
  for (Operation *user : value.getUsers())
    worklist.insert(user);
  for (Value tied : tiedValues(value))
    assign(tied, place);
}

/// Shared by map and mask: the place of input `dims` of a result at `place`.
static Place project(const Place &place, ArrayRef<int64_t> dims) {
  Place result{place.root, {}};
  for (int64_t d : dims)
    result.dims.push_back(place.dims[d]);
  return result;
}

static Place dropDim(const Place &place, int64_t dim) {
  Place result = place;
  result.dims.erase(result.dims.begin() + dim);
  return result;
}

void Assigner::propagate(Operation *op) {
  auto known = [&](Value value) -> const Place * {
    auto it = places.find(value);
    return it == places.end() ? nullptr : &it->second;
  };
  auto same = [&](ValueRange values) {
    for (Value value : values)
      if (const Place *found = known(value)) {
        Place place = *found;
        for (Value other : values)
          assign(other, place);
        return;
      }
  };
  TypeSwitch<Operation *>(op)
      .Case<MapOp>([&](MapOp map) {
        same(map.getResults());
        int64_t full = map.getShape().size();
        for (auto [i, input] : llvm::enumerate(map.getInputs()))
          if (rank(input) == full && !known(map.getResult(0)))
            if (const Place *place = known(input)) {
              Place copy = *place;
              for (Value result : map.getResults())
                assign(result, copy);
            }
        if (const Place *found = known(map.getResult(0))) {
          Place place = *found;
          for (auto [i, input] : llvm::enumerate(map.getInputs()))
            assign(input, project(place, map.getInputDims(i)));
        }
      })
      .Case<MaskOp>([&](MaskOp mask) {
        same({mask.getValue(), mask.getResult()});
        if (const Place *found = known(mask.getResult())) {
          Place place = *found;
          for (auto [i, input] : llvm::enumerate(mask.getInputs()))
            assign(input, project(place, mask.getInputDims(i)));
        }
      })
      .Case<ReduceOp>([&](ReduceOp reduce) {
        if (!reduce.getDim())
          return same({reduce.getValue(), reduce.getResult()});
        if (const Place *found = known(reduce.getValue()))
          assign(reduce.getResult(), dropDim(Place(*found), *reduce.getDim()));
        else if (known(reduce.getResult())) {
          // Backwards only where the answer is unique: the value spans the whole root.
          Place place = *known(reduce.getResult());
          int64_t full = mma.getWarps().size();
          if (rank(reduce.getValue()) == full) {
            Place whole{place.root, {}};
            for (int64_t d = 0; d < full; ++d)
              whole.dims.push_back(d);
            if (dropDim(whole, *reduce.getDim()) == place)
              assign(reduce.getValue(), whole);
          }
        }
        if (reduce.getInit())
          same({reduce.getInit(), reduce.getResult()});
      })
      .Case<SliceOp>([&](SliceOp slice) { same({slice.getSource(), slice.getResult()}); })
      .Case<SwapPairsOp>([&](SwapPairsOp swap) { same({swap.getSource(), swap.getResult()}); })
      .Case<ConcatOp>([&](ConcatOp concat) {
        SmallVector<Value> all(concat.getInputs());
        all.push_back(concat.getResult());
        same(all);
      })
      .Default([](Operation *) {});
}

void Assigner::drain() {
  while (!worklist.empty()) {
    Operation *op = worklist.front();
    worklist.erase(worklist.begin());
    propagate(op);
  }
}

/// What no dot reaches: the kernel's accumulator layout, by rank, in program order, largest rank first.
void Assigner::defaults() {
  int64_t full = mma.getWarps().size();
  int64_t groups = full == 3 ? mma.getWarps()[0] : 0;
  for (int64_t wanted = full; wanted >= 1; --wanted) {
    SmallVector<Value> values;
    kernel.walk<WalkOrder::PreOrder>([&](Operation *op) {
      for (Value value : op->getResults())
        if (isReg(value) && rank(value) == wanted)
          values.push_back(value);
    });
    for (Value value : values) {
      if (places.count(value))
        continue;
      ArrayRef<int64_t> shape = cast<RegType>(value.getType()).getShape();
      Place place{mma, {}};
      if (wanted == full)
        place.dims = full == 3 ? SmallVector<int64_t, 3>{0, 1, 2} : SmallVector<int64_t, 3>{0, 1};
      else if (full == 3 && wanted == 2)
        place.dims = shape[0] == groups ? SmallVector<int64_t, 3>{0, 1} : SmallVector<int64_t, 3>{1, 2};
      else
        place.dims = {full - 2};
      assign(value, place);
      drain();
    }
  }
}

//===----------------------------------------------------------------------===//
// Conflicts
//===----------------------------------------------------------------------===//

std::optional<Place> Assigner::demand(OpOperand &operand) {
  Operation *op = operand.getOwner();
  auto placeOf = [&](Value value) -> std::optional<Place> {
    auto it = places.find(value);
    return it == places.end() ? std::nullopt : std::optional<Place>(it->second);
  };
  unsigned i = operand.getOperandNumber();
  int64_t full = mma.getWarps().size();
  if (auto map = dyn_cast<MapOp>(op)) {
    if (i >= map.getInputs().size())
      return std::nullopt;
    return project(*placeOf(map.getResult(0)), map.getInputDims(i));
  }
  if (auto mask = dyn_cast<MaskOp>(op)) {
    if (i == 0)
      return placeOf(mask.getResult());
    return project(*placeOf(mask.getResult()), mask.getInputDims(i - 1));
  }
  if (auto dot = dyn_cast<DotOp>(op)) {
    Place place{mma, {}};
    for (int64_t d = full - rank(operand.get()); d < full; ++d)
      place.dims.push_back(d);
    if (operand.get() == dot.getB() && i == 1)
      place.root = OperandAttr::get(kernel.getContext(), dot.getTransposeB() ? OperandKind::BT : OperandKind::B, mma);
    return place;
  }
  if (auto reduce = dyn_cast<ReduceOp>(op)) {
    if (i == 1)
      return placeOf(reduce.getResult());
    return std::nullopt; // the result follows the value
  }
  if (isa<SliceOp, ConcatOp, SwapPairsOp>(op))
    return placeOf(op->getResult(0));
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return placeOf(loop.getRegionIterArg(i - loop.getNumControlOperands()));
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return placeOf(loop.getBeforeArguments()[i]);
  if (isa<scf::ConditionOp>(op))
    return placeOf(cast<scf::WhileOp>(op->getParentOp()).getResult(i - 1));
  if (isa<YieldOp>(op) && isa<TransformOp>(op->getParentOp()))
    return placeOf(op->getBlock()->getArgument(0));
  if (isa<scf::YieldOp>(op)) {
    Operation *parent = op->getParentOp();
    if (auto loop = dyn_cast<scf::WhileOp>(parent))
      return placeOf(loop.getBeforeArguments()[i]);
    return placeOf(parent->getResult(i));
  }
  return std::nullopt;
}

/// Brings the operands of `op` to what it wants.
void Assigner::resolve(Operation *op) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isReg(operand.get()))
      continue;
    std::optional<Place> wanted = demand(operand);
    Place have = places.lookup(operand.get());
    if (!wanted || *wanted == have)
      continue;
    OpBuilder builder(op);
    Operation *def = operand.get().getDefiningOp();
    auto map = dyn_cast_or_null<MapOp>(def);
    if (isa_and_nonnull<SplatOp>(def) || (map && map.getInputs().empty())) { // cheaper again than moved
      Operation *copy = builder.clone(*def);
      for (Value result : copy->getResults())
        places[result] = *wanted;
      operand.set(copy->getResult(cast<OpResult>(operand.get()).getResultNumber()));
      continue;
    }
    auto convert = ConvertLayoutOp::create(builder, op->getLoc(), operand.get().getType(), operand.get());
    places[convert.getResult()] = *wanted;
    conversions.push_back(convert);
    operand.set(convert.getResult());
  }
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// A operands keep their mark through cuts, joins and loops.
void Assigner::markOperandsA() {
  SmallVector<Value> work;
  auto mark = [&](Value value) {
    auto reg = dyn_cast<RegType>(value.getType());
    if (reg && reg.getElementType().isIntOrFloat() && reg.getElementType().getIntOrFloatBitWidth() == 16 &&
        operandA.insert(value).second)
      work.push_back(value);
  };
  kernel.walk([&](DotOp dot) { mark(dot.getA()); });
  while (!work.empty()) {
    Value value = work.pop_back_val();
    for (Value tied : tiedValues(value))
      mark(tied);
    SmallVector<Operation *> around(value.getUsers());
    if (Operation *def = value.getDefiningOp())
      around.push_back(def);
    for (Operation *op : around)
      if (isa<SliceOp, ConcatOp, SwapPairsOp>(op)) {
        for (Value operand : op->getOperands())
          mark(operand);
        mark(op->getResult(0));
      }
  }
}

Attribute Assigner::layoutOf(const Place &place, bool isA) {
  MLIRContext *context = kernel.getContext();
  int64_t full = mma.getWarps().size(), rank = place.dims.size();
  // An operand that lacks the group dimension is shared by the groups.
  if (isA && place.root == mma && rank >= 2 && place.dims.front() == full - rank && place.dims.back() == full - 1)
    return OperandAttr::get(context, OperandKind::A, mma);
  Attribute layout = place.root;
  if (auto blocked = dyn_cast<BlockedAttr>(place.root))
    full = blocked.getWarps().size();
  for (int64_t d = full - 1; d >= 0; --d)
    if (!llvm::is_contained(place.dims, d))
      layout = SliceAttr::get(context, d, layout, /*partial=*/false);
  return layout;
}

Attribute Assigner::swizzleOf(SmemType type) {
  int64_t bytes = type.getElementType().getIntOrFloatBitWidth() / 8, row = type.getShape().back() * bytes;
  // Tensor copies want few boxes, so they get whole panels of 128 bytes and fill what lies beside the rows with zeros.
  if (config.getConsumers() > 0 && bytes == 2 && row % 32 == 0 && row != 32 && row != 64)
    return SwizzleAttr::get(type.getContext(), 128, 64);
  for (int64_t width : {128, 64, 32})
    if (row % width == 0)
      return SwizzleAttr::get(type.getContext(), width, width / bytes);
  return {};
}

LogicalResult Assigner::setTypes() {
  auto setType = [&](Value value, Operation *where) -> LogicalResult {
    if (auto reg = dyn_cast<RegType>(value.getType())) {
      auto it = places.find(value);
      if (it == places.end())
        return where->emitOpError()
               << "has a register tile that no layout reaches, expected one used by tile or scf ops only";
      value.setType(reg.withLayout(layoutOf(it->second, operandA.count(value))));
    } else if (auto smem = dyn_cast<SmemType>(value.getType())) {
      if (auto subview = value.getDefiningOp<SubviewOp>()) { // a part keeps the panels of the whole
        value.setType(smem.withLayout(cast<SmemType>(subview.getSource().getType()).getLayout()));
        return success();
      }
      Attribute layout = swizzleOf(smem);
      if (!layout)
        return where->emitOpError() << "has shared-memory rows of "
                                    << smem.getShape().back() * smem.getElementType().getIntOrFloatBitWidth() / 8
                                    << " bytes, expected a multiple of 32: pad the tile with zeros";
      value.setType(smem.withLayout(layout));
    }
    return success();
  };
  WalkResult result = kernel.walk<WalkOrder::PreOrder>([&](Operation *op) {
    for (Value value : op->getResults())
      if (failed(setType(value, op)))
        return WalkResult::interrupt();
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Value value : block.getArguments())
          if (failed(setType(value, op)))
            return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult Assigner::run() {
  if (failed(checkInput()) || failed(chooseRoot()))
    return failure();
  SmallVector<DotOp> dots;
  kernel.walk([&](DotOp dot) { dots.push_back(dot); });
  for (DotOp dot : dots)
    if (failed(anchorDot(dot)))
      return failure();
  kernel.walk([&](TransformOp transform) { anchorTransform(transform); });
  drain();
  defaults();
  SmallVector<Operation *> ops;
  kernel.walk([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : ops)
    resolve(op);
  markOperandsA();
  return setTypes();
}

namespace {
struct TileAssignLayoutsPass : public tile::impl::TileAssignLayoutsPassBase<TileAssignLayoutsPass> {
  using TileAssignLayoutsPassBase::TileAssignLayoutsPassBase;

  void runOnOperation() override {
    KernelOp kernel = getOperation();
    attn::ConfigAttr config = requireConfig(kernel);
    if (!config || failed(checkLevel(kernel, Level::Logical, "layouts are assigned before pipelines and roles exist")))
      return signalPassFailure();
    Assigner assigner(kernel, config);
    if (failed(assigner.run()))
      return signalPassFailure();
    numConversions += assigner.conversions.size();
    if (!forbidLoopConversions)
      return;
    for (ConvertLayoutOp convert : assigner.conversions)
      if (convert->getParentOfType<scf::ForOp>()) {
        convert.emitOpError() << "converts a layout inside a loop, where 'forbid-loop-conversions' allows none";
        return signalPassFailure();
      }
  }
};
} // namespace
