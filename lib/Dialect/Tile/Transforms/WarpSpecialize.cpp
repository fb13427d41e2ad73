//===- WarpSpecialize.cpp - a producer warp and consumer groups ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   for_each item: Q = load; for j: K = load, V = load, compute; store
// becomes
//   role producer: for_each item: acquire/load Q; for j: acquire/load K, V
//   role consumer, one group for a part of the rows:
//     for_each item: wait Q; for j: wait K, compute, release K, ...; release Q; store
//
// The producer loads in the order of the kernel's loads, which is the order in
// which the consumers wait, so the rings cannot deadlock.
//
//===----------------------------------------------------------------------===//

#include "WarpSpecialize.h"
#include "Kernels.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/SharedMemory.h"
#include "attn/Target/KnownTargets.h"
#include "attn/Target/RoleRegisters.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>
#include <string>

namespace mlir::tile {
#define GEN_PASS_DEF_TILEWARPSPECIALIZEPASS
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace mlir::tile

using namespace mlir;
using namespace mlir::tile;
using namespace mlir::tile::specialize;

bool specialize::isRowTile(RegType type) {
  if (type.getRank() == 2)
    return true;
  auto slice = dyn_cast_or_null<SliceAttr>(type.getLayout());
  return slice && slice.getDim() == 1;
}

//===----------------------------------------------------------------------===//
// What can be specialised
//===----------------------------------------------------------------------===//

/// Rows can be split between groups: every register tile is laid out by rows, and no op mixes rows.
static LogicalResult checkRows(Plan &plan, int64_t rows) {
  WalkResult result = plan.items.walk<WalkOrder::PreOrder>([&](Operation *op) -> WalkResult {
    if (isa<TransformOp>(op)) // a few rows of a stage, in a layout of their own
      return WalkResult::skip();
    auto check = [&](Type type) -> LogicalResult {
      auto reg = dyn_cast<RegType>(type);
      if (!reg)
        return success();
      if (!reg.getLayout())
        return op->emitOpError() << "has a register tile without layout; run tile-assign-layouts first";
      if (auto operand = dyn_cast<OperandAttr>(reg.getLayout()); operand && operand.getKind() != OperandKind::A)
        return op->emitOpError() << "computes K or V in registers, which needs a role of its own";
      if (reg.getRank() > 2)
        return op->emitOpError() << "has key groups, which warp specialisation does not split";
      if (isRowTile(reg) && reg.getShape()[0] != rows)
        return op->emitOpError() << "has a tile of " << reg.getShape()[0] << " rows, expected the " << rows
                                 << " of the config";
      return success();
    };
    for (Type type : op->getResultTypes())
      if (failed(check(type)))
        return WalkResult::interrupt();
    bool mixes = false;
    if (auto reduce = dyn_cast<ReduceOp>(op))
      mixes = reduce.getDim() && *reduce.getDim() == 0;
    if (auto slice = dyn_cast<SliceOp>(op))
      mixes = cast<RegType>(slice.getResult().getType()).getShape()[0] !=
              cast<RegType>(slice.getSource().getType()).getShape()[0];
    if (auto concat = dyn_cast<ConcatOp>(op))
      mixes = concat.getDim() == 0;
    if (mixes) {
      op->emitOpError() << "mixes rows that different consumers hold";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// Finds the rings: one for each view that is loaded to shared memory.
static LogicalResult findRings(Plan &plan) {
  WalkResult result = plan.kernel.walk([&](LoadOp load) -> WalkResult {
    if (!isShared(load))
      return WalkResult::advance();
    for (Operation *parent = load->getParentOp(); parent != plan.items; parent = parent->getParentOp())
      if (!isa<scf::ForOp, scf::IfOp>(parent)) {
        parent->emitOpError() << "holds a load, expected scf.for and scf.if around it";
        return WalkResult::interrupt();
      }
    bool rows = false, keys = false;
    Value stage = load.getResult();
    auto transform = stage.hasOneUse() ? dyn_cast<TransformOp>(*stage.user_begin()) : TransformOp();
    if (transform)
      stage = transform.getResult();
    for (OpOperand &use : stage.getUses()) {
      Operation *user = use.getOwner();
      if (isa<DotOp>(user))
        (use.getOperandNumber() == 0 ? rows : keys) = true;
      else if (isa<LocalLoadOp>(user))
        rows = true; // B operands in registers are refused by checkRows
      else {
        user->emitOpError() << "uses a loaded tile, expected tile.dot or tile.local_load only";
        return WalkResult::interrupt();
      }
    }
    if (rows && keys) {
      load.emitOpError() << "loads a tile for rows and for keys";
      return WalkResult::interrupt();
    }
    auto type = cast<SmemType>(load.getResult().getType()), made = cast<SmemType>(stage.getType());
    if (rows && made != type) {
      transform.emitOpError() << "makes " << made.getElementType() << " of a query tile of " << type.getElementType()
                              << ", expected the same elements: no role does that";
      return WalkResult::interrupt();
    }
    auto [it, fresh] = plan.rings.try_emplace(load.getView());
    Ring &ring = it->second;
    if (!fresh &&
        (ring.type != type || ring.rows != rows || ring.made != made || ring.hooked != static_cast<bool>(transform))) {
      load.emitOpError() << "loads another kind of tile from a view than the loads before";
      return WalkResult::interrupt();
    }
    ring.type = type;
    ring.rows = rows;
    ring.hooked = static_cast<bool>(transform);
    ring.made = made;
    ring.looped |= load->getParentOfType<scf::ForOp>() != nullptr;
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  if (plan.rings.empty())
    return plan.kernel.emitOpError() << "loads nothing to shared memory, so there is no work for a producer";
  return success();
}

static LogicalResult makePlan(KernelOp kernel, mlir::attn::ConfigAttr config, Plan &plan) {
  plan.kernel = kernel;
  for (Operation &op : kernel.getBody().front()) {
    if (auto items = dyn_cast<ForEachOp>(op)) {
      if (plan.items)
        return items.emitOpError() << "is the second of its kernel, expected one to specialise";
      plan.items = items;
    } else if (op.getNumRegions() || (!isMemoryEffectFree(&op) && !isa<memref::LoadOp, func::CallOp>(op))) {
      return op.emitOpError() << "stands beside tile.for_each, expected scalars only";
    }
  }
  if (!plan.items)
    return kernel.emitOpError() << "has no tile.for_each";
  plan.groups = config.getConsumers();
  plan.queryInRegisters = config.getQInRegisters();
  if (plan.groups < 1)
    return kernel.emitOpError() << "has no consumers, expected their number in the config";
  if (config.getWarps() % plan.groups || config.getRows() % config.getWarps() ||
      config.getRows() / config.getWarps() % 16)
    return kernel.emitOpError() << "has " << config.getRows() << " rows and " << config.getWarps() << " warps for "
                                << plan.groups << " consumers, expected multiples of 16 rows a warp";
  plan.warps = config.getWarps() / plan.groups;
  if (failed(checkRows(plan, config.getRows())))
    return failure();
  return findRings(plan);
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Producers: one warp for tensor copies, or one for each paged view of the key loop, whose boxes take a warp a good
/// part of a step; keys that are gathered have a role of their own. So has the query tile: a warp that also loads keys
/// comes to the next item when the consumers are nearly there, and query tiles come from far.
static SmallVector<std::pair<std::string, int64_t>> assignProducers(Plan &plan, int64_t gatherWarps) {
  SmallVector<std::pair<std::string, int64_t>> producers; // names and warps
  auto isGathered = [](auto &entry) { return entry.second.gather; };
  if (!llvm::all_of(plan.rings, isGathered))
    producers.push_back({"producer", 1});
  bool first = true;
  for (auto &[view, ring] : plan.rings) {
    if (ring.gather || !ring.looped || !cast<ViewType>(view.getType()).isPaged())
      continue;
    if (!first && producers.size() < 3) {
      ring.producer = producers.size();
      producers.push_back({"producer" + std::to_string(producers.size() + 1), 1});
    }
    first = false;
  }
  bool looped = llvm::any_of(plan.rings, [](auto &entry) { return entry.second.looped && !entry.second.gather; });
  bool once = llvm::any_of(plan.rings, [](auto &entry) { return !entry.second.looped && !entry.second.gather; });
  if (looped && once) {
    for (auto &[view, ring] : plan.rings)
      if (!ring.looped && !ring.gather)
        ring.producer = producers.size();
    producers.push_back({"query", 1});
  }
  for (auto &[view, ring] : plan.rings)
    if (ring.gather)
      ring.producer = producers.size();
  if (llvm::any_of(plan.rings, isGathered))
    producers.push_back({"gather", gatherWarps});
  return producers;
}

/// Boxes of 8 rows are as many as the groups of rows of a stage when they take its panels together; boxes of more rows
/// are no more than that as they are. Roles that transform read panels whole.
static bool wantsRowGroups(Value view, const Ring &ring) {
  auto type = cast<ViewType>(view.getType());
  auto swizzle = dyn_cast_or_null<SwizzleAttr>(ring.type.getLayout());
  if (ring.rows || ring.hooked || ring.gather || !type.isPaged() || ring.type.getRank() != 2 || !swizzle)
    return false;
  ArrayRef<int64_t> shape = ring.type.getShape();
  return std::gcd(type.getPage(), shape[0]) == 8 && swizzle.getBytes() == 128 && shape[1] > swizzle.getPanel() &&
         shape[1] % swizzle.getPanel() == 0 && type.getShape()[1] == shape[1];
}

/// Stages of what is loaded once an item: one is in use, the next item's has arrived, and results of the item before
/// leave through the third (tile-store-role); two, or one, where three do not fit.
static int64_t getItemStages(Plan &plan, mlir::attn::ConfigAttr config) {
  auto target = plan.kernel->getAttrOfType<mlir::attn::TargetAttr>("target");
  const ::attn::TargetInfo *info = target ? ::attn::findTarget(target.getChip()) : nullptr;
  if (!info)
    return 1;
  int64_t fixed = 2048, each = 0; // barriers and words, stages of keys; a stage of what is loaded once
  for (auto &[view, ring] : plan.rings) {
    int64_t bytes = llvm::alignTo(ring.type.getBytes(), 1024);
    if (ring.made != ring.type)
      bytes += llvm::alignTo(ring.made.getBytes(), 1024);
    (ring.looped ? fixed : each) += bytes * (ring.looped ? config.getStages() : 1);
  }
  for (int64_t stages : {3, 2})
    if (fixed + stages * each <= info->sharedPerCta)
      return stages;
  return 1;
}

/// Whether the op is a lookup of several entries whose results are numbers.
static bool isLookup(Operation &op) {
  if (!llvm::all_of(op.getResultTypes(), [](Type type) { return type.isIndex(); }))
    return false;
  if (isa<ScanOp>(op))
    return true;
  return isa<scf::ForOp>(op) && containsOp<memref::LoadOp>(&op) &&
         !op.walk([](Operation *inner) {
              bool scalar = isa<scf::SCFDialect, arith::ArithDialect, memref::MemRefDialect>(inner->getDialect());
              return scalar ? WalkResult::advance() : WalkResult::interrupt();
            }).wasInterrupted();
}

static LogicalResult specializeKernel(KernelOp kernel) {
  if (failed(checkLevel(kernel, Level::Logical, "it has pipelines or roles already")))
    return failure();
  mlir::attn::ConfigAttr config = requireConfig(kernel);
  if (!config)
    return failure();
  Plan plan;
  if (failed(makePlan(kernel, config, plan)))
    return failure();
  OpBuilder builder(plan.items);
  Location loc = plan.items.getLoc();
  int64_t lookups = 0;
  for (Operation &op : plan.items.getBody().front())
    if (isLookup(op))
      op.setAttr(kLookup, builder.getI64IntegerAttr(lookups++));
  int64_t itemStages = getItemStages(plan, config);
  bool hooks = false; // on keys: a role of its own hands the stages on
  for (auto &[view, ring] : plan.rings) {
    ring.gather = config.getLoad() == mlir::attn::LoadPath::Gather && !ring.rows;
    int64_t stages = ring.looped ? config.getStages() : itemStages;
    auto type = PipelineType::get(kernel.getContext(), stages, ring.type, 0);
    bool handedOn = ring.hooked && !ring.rows;
    hooks |= handedOn;
    auto pipeline = PipelineOp::create(builder, view.getLoc(), type, Value(), 1, handedOn ? 1 : plan.groups);
    ring.pipeline = ring.ready = pipeline;
    if (wantsRowGroups(view, ring))
      pipeline->setAttr(kRowGroups, builder.getUnitAttr());
    if (handedOn)
      ring.ready =
          PipelineOp::create(builder, view.getLoc(), PipelineType::get(kernel.getContext(), stages, ring.made, 0),
                             ring.made == ring.type ? ring.pipeline : Value(), 1, plan.groups);
  }
  auto range = kernel->getAttrOfType<IntegerAttr>(kRangeLength);
  ::attn::RoleWork work;
  work.consumers = plan.groups;
  work.hooks = hooks;
  work.range = range ? range.getInt() : 0;
  for (auto &[view, ring] : plan.rings) {
    work.gather |= ring.gather;
    work.pages |= ring.gather || cast<ViewType>(view.getType()).isPaged();
    work.columns = std::max(work.columns, ring.type.getShape().back());
    if (!ring.rows)
      work.columns = std::max(work.columns, ring.type.getShape().front());
  }
  ::attn::RoleRegisters registers = ::attn::getRoleRegisters(work);
  auto roles = RolesOp::create(builder, loc);
  builder.createBlock(&roles.getBody());
  auto makeRole = [&](StringRef name, int64_t warps, int64_t groups, int64_t registers) {
    builder.setInsertionPointToEnd(&roles.getBody().front());
    auto role = RoleOp::create(builder, loc, builder.getStringAttr(name), builder.getI64IntegerAttr(warps),
                               builder.getI64IntegerAttr(groups), builder.getI64IntegerAttr(registers));
    Block *block = builder.createBlock(&role.getBody());
    if (groups > 1)
      block->addArgument(builder.getIndexType(), loc);
    YieldOp::create(builder, loc, ValueRange());
    builder.setInsertionPointToStart(block);
    return role;
  };
  for (auto [i, producer] : llvm::enumerate(assignProducers(plan, registers.gatherWarps))) {
    makeRole(producer.first, producer.second, 1, registers.producer);
    if (failed(emitProducer(plan, builder, i)))
      return failure();
  }
  if (hooks) {
    makeRole("transformer", kTransformWarps, 1, registers.transformer);
    if (failed(emitTransformer(plan, builder)))
      return failure();
  }
  RoleOp consumer = makeRole("consumer", plan.warps, plan.groups, registers.consumer);
  Value row0;
  if (plan.groups > 1) {
    Value rows = arith::ConstantIndexOp::create(builder, loc, config.getRows() / plan.groups);
    row0 = arith::MulIOp::create(builder, loc, consumer.getBody().getArgument(0), rows);
  } else {
    row0 = arith::ConstantIndexOp::create(builder, loc, 0);
  }
  if (failed(emitConsumer(plan, builder, row0)))
    return failure();
  plan.items.erase();
  kernel.setLevel(Level::Specialized);
  return success();
}

namespace {
struct WarpSpecializePass : tile::impl::TileWarpSpecializePassBase<WarpSpecializePass> {
  void runOnOperation() override {
    if (failed(specializeKernel(getOperation())))
      return signalPassFailure();
  }
};
} // namespace
