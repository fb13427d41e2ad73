//===- SelectConfig.cpp - chooses and checks kernel configs ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a config needs, which configs have consumers, and what is wrong with one
// that was written by hand. ConfigCandidates.cpp lists those worth having.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/Transforms/SelectConfig.h"
#include "attn/Analysis/LogitBounds.h"
#include "attn/Analysis/MaskAnalysis.h"
#include "attn/Dialect/Attn/Transforms/Dependence.h"
#include "attn/Target/RoleRegisters.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attn;
using ::attn::TargetInfo;

/// Registers of a thread (PTX ISA: 255 is the most that an instruction can name).
static constexpr int64_t kRegisters = 255;

static int64_t bytesOf(Value value) {
  return cast<ShapedType>(value.getType()).getElementType().getIntOrFloatBitWidth() / 8;
}

static bool isEightBit(AttentionOp op) { return bytesOf(op.getK()) == 1; }

int64_t mlir::attn::getHeadDimUnit(AttentionOp op) { return isEightBit(op) ? 32 : 16; }

static bool hasHook(AttentionOp op, HookKind kind) {
  VariantOp variant = op.lookupVariant();
  return variant && variant.getHook(kind);
}

int64_t mlir::attn::getRegisterLimit(AttentionOp op, ConfigAttr config) {
  if (config.getConsumers() == 0)
    return kRegisters;
  ::attn::RoleWork work;
  work.consumers = config.getConsumers();
  work.pages = op.getFormat().getKind() != FormatKind::Ragged || config.getLoad() == LoadPath::Gather;
  work.gather = config.getLoad() == LoadPath::Gather;
  work.columns = std::max({config.getKeys(), op.getHeadDimQk(), op.getHeadDimVo()});
  work.hooks = hasHook(op, HookKind::Key) || hasHook(op, HookKind::Value) || isEightBit(op);
  work.range = analyzeMask(op.lookupVariant()).getLength();
  return ::attn::getRoleRegisters(work).consumer;
}

/// Whether Q, K or V is computed anew in shared memory before the products read it.
static bool transformsHeads(AttentionOp op) {
  return isEightBit(op) || llvm::any_of(ArrayRef({HookKind::Query, HookKind::Key, HookKind::Value}),
                                        [&](HookKind kind) { return hasHook(op, kind); });
}

std::string mlir::attn::whyNoConsumers(AttentionOp op, int64_t rows, int64_t keys, const TargetInfo &target) {
  if (!target.wgmma)
    return target.chip.str() + " has no warpgroup products";
  if (!target.tma)
    return target.chip.str() + " has no tensor copies";
  if (rows % 64 != 0)
    return llvm::formatv("{0} rows are not whole warpgroups of 64", rows);
  if (rows > 256)
    return llvm::formatv("{0} rows do not fit into one tensor copy of 256", rows);
  for (int64_t dim : {op.getHeadDimQk(), op.getHeadDimVo()}) {
    if (dim > 256)
      return llvm::formatv("head dim {0} is more than the 256 columns of a warpgroup's product", dim);
    if (dim * bytesOf(op.getK()) % 16 != 0)
      return llvm::formatv("rows of {0} bytes are not whole 16 bytes, which tensor copies want",
                           dim * bytesOf(op.getK()));
  }
  if (op.getFormat().getKind() == FormatKind::Ragged)
    return "";
  if (op.getFormat().getKind() == FormatKind::Paged)
    return "";
  int64_t block = op.getPageSize();
  if (block % 8 != 0)
    return llvm::formatv("column blocks of {0} keys are not whole groups of 8 rows", block);
  if (keys % block != 0 && block % keys != 0)
    return llvm::formatv("column blocks of {0} keys and tiles of {1} do not divide one another", block, keys);
  return "";
}

/// Whether a hook makes more of the positions of keys than sums and differences, which fold into constants.
static bool keepsPositions(HookOp hook) {
  return hook.getBody()
      .walk([](Operation *op) {
        bool folds = isa<arith::AddIOp, arith::SubIOp, arith::IndexCastOp, arith::SIToFPOp>(op);
        bool reads = llvm::any_of(op->getOperands(),
                                  [](Value v) { return v.getType().isIntOrIndex() && findDependence(v).key; });
        return reads && !folds ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Registers that the hooks of a step keep beside its tiles, where ptxas has no other warps to hide behind (seen on the
/// example variants): a logits hook's temporaries, the addresses of what a mask reads for each logit.
static int64_t hookRegisters(AttentionOp op, int64_t keys) {
  VariantOp variant = op.lookupVariant();
  if (!variant)
    return 0;
  int64_t registers = 0;
  if (HookOp logits = variant.getHook(HookKind::Logits)) {
    // The pieces of an accurate function and their constants; an approximate one is an instruction (and so, nearly, one
    // that may err absolutely), sums and products stay in place.
    bool bounded = hasBoundedLogits(op);
    bool accurate = logits.getBody()
                        .walk([&](arith::ArithFastMathInterface op) {
                          bool ours = isa<math::TanhOp, math::ExpOp, math::Exp2Op, math::LogOp, math::PowFOp>(op);
                          arith::FastMathFlagsAttr flags = ours ? op.getFastMathFlagsAttr() : nullptr;
                          ours &= !(bounded && isa<math::TanhOp>(op) && isScaledYield(op));
                          return ours && !(flags && bitEnumContainsAny(flags.getValue(), arith::FastMathFlags::afn))
                                     ? WalkResult::interrupt()
                                     : WalkResult::advance();
                        })
                        .wasInterrupted();
    int64_t longer = std::max<int64_t>(op.getHeadDimQk() - op.getHeadDimVo(), 0);
    bool functions = logits.getBody()
                         .walk([](Operation *op) {
                           bool ours = isa<math::MathDialect>(op->getDialect()) && !isa<math::FmaOp, math::AbsFOp>(op);
                           return ours || isa<arith::DivFOp>(op) ? WalkResult::interrupt() : WalkResult::advance();
                         })
                         .wasInterrupted();
    registers = accurate ? 36 + longer / 8 : functions ? 16 : 6;
    // No row maxima, nor what is made of them.
    if (bounded)
      registers = std::max<int64_t>(registers - 10, 0);
    // Each of a thread's columns keeps its position.
    if (keepsPositions(logits))
      registers += 16 + keys / 4;
  }
  if (variant.getHook(HookKind::Query)) // consumers transform their rows
    registers += 24;
  int64_t loads = 0;
  for (HookKind kind : {HookKind::Logits, HookKind::Mask})
    if (HookOp hook = variant.getHook(kind))
      hook.getBody().walk([&](memref::LoadOp load) {
        Dependence all;
        for (Value index : load.getIndices())
          all |= findDependence(index);
        if (all.key)
          loads = std::max<int64_t>(loads, all.row ? 104 : 16);
      });
  registers += loads;
  return registers;
}

static bool readsMemory(HookOp hook) {
  return hook.getBody().walk([](memref::LoadOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

bool mlir::attn::keepsQInRegisters(AttentionOp op, ConfigAttr config) {
  if (config.getRows() > 16)
    return config.getQInRegisters();
  return op.getHeadDimQk() <= 128 || !transformsHeads(op);
}

int64_t mlir::attn::getQueryStages(AttentionOp op, ConfigAttr config, const TargetInfo &target) {
  ConfigNeeds needs = estimateNeeds(op, config, target);
  int64_t tile = config.getRows() * llvm::alignTo(op.getHeadDimQk(), 64) * bytesOf(op.getQ());
  for (int64_t stages : {3, 2})
    if (needs.sharedMemory + 1024 + (stages - 1) * tile <= target.sharedPerCta)
      return stages;
  return 1;
}

ConfigNeeds mlir::attn::estimateNeeds(AttentionOp op, ConfigAttr config, const TargetInfo &target) {
  int64_t unit = getHeadDimUnit(op), q = bytesOf(op.getQ());
  int64_t dqk = llvm::alignTo(op.getHeadDimQk(), unit), dvo = llvm::alignTo(op.getHeadDimVo(), unit);
  int64_t rows = config.getRows(), keys = config.getKeys(), groups = config.getGroups();
  ConfigNeeds needs;
  bool roles = config.getConsumers() > 0;
  bool qInRegisters = roles ? config.getQInRegisters() : keepsQInRegisters(op, config);
  // Tensor copies fill whole panels of 128 bytes (tile-assign-layouts).
  auto panels = [&](int64_t columns) { return roles && columns > 32 ? llvm::alignTo(columns, 64) : columns; };
  int64_t stage = keys * (panels(dqk) + panels(dvo)) * q;
  if (!qInRegisters || roles || hasHook(op, HookKind::Query))
    needs.sharedMemory += rows * panels(dqk) * q;
  needs.sharedMemory += config.getStages() * (isEightBit(op) ? keys * (dqk + dvo) : stage);
  // 8-bit K and V are widened in shared memory: in stages of their own for consumers, else one after the other.
  if (isEightBit(op))
    needs.sharedMemory += roles ? config.getStages() * stage : 2 * keys * std::max(dqk, dvo);
  // The states of the groups meet in shared memory, in the place of K and V.
  if (groups > 1)
    needs.sharedMemory = std::max(needs.sharedMemory, groups * rows * (dvo + 2) * 4);
  needs.sharedMemory += 1024; // barriers, alignment of stages
  // Registers: output and scores in fp32, a part of the weights in 16 bits (scores die as they are made; with consumers
  // the weights of the block before are read meanwhile), Q where it is there, two 16-wide operands, addresses.
  int64_t threads = 32 * config.getWarps();
  int64_t scores = rows * keys / groups; // of a group
  int64_t perGroup = groups > 1 ? threads / groups : threads;
  int64_t words = rows * dvo + scores + (roles ? scores / 2 : scores / 4);
  if (qInRegisters)
    words += rows * dqk / 2;
  needs.registers = (words + perGroup - 1) / perGroup;
  if (roles) {
    // The rest grows with the output: seen with ptxas 13.0 over head dims 64, 128 and 256, with masks and without.
    needs.registers += 20 + dvo / 8 + (hasHook(op, HookKind::Mask) ? 4 : 0) + hookRegisters(op, keys);
    return needs;
  }
  needs.registers += 40;
  // What a transform keeps over its steps, rope's frequencies above all: 8 columns of a thread.
  if (hasHook(op, HookKind::Key) || hasHook(op, HookKind::Value))
    needs.margin += 32;
  // Hooks that run on every score: their coordinates, and loads that are issued together.
  int64_t mine = (scores + perGroup - 1) / perGroup;
  // bsr: positions of the thread's keys, and the loads that they come from.
  if (op.getFormat().getKind() == FormatKind::Bsr && op.lookupVariant())
    needs.margin += 8 + 3 * keys / groups / 4;
  for (HookKind kind : {HookKind::Logits, HookKind::Mask}) {
    if (!hasHook(op, kind))
      continue;
    if (readsMemory(op.lookupVariant().getHook(kind)))
      needs.margin += 40 + 2 * mine;
    else if (kind == HookKind::Logits)
      needs.margin += 12 + mine;
  }
  return needs;
}

LogicalResult mlir::attn::verifyConfig(AttentionOp op, ConfigAttr config, const TargetInfo *target) {
  auto error = [&]() { return op.emitOpError() << "config " << config << ": "; };
  int64_t rows = config.getRows(), keys = config.getKeys(), groups = config.getGroups(), pack = config.getPack();
  if (rows < 1 || keys < 1 || groups < 1 || pack < 1 || config.getStages() < 1 || config.getWarps() < 1)
    return error() << "rows, keys, stages, warps, groups and pack must be at least 1";
  if (rows > 1024 || keys > 1024 || config.getStages() > 32 || config.getWarps() > 32)
    return error() << "expected at most 1024 rows and keys, 32 stages and 32 warps";
  if (config.getOrder() != ItemOrder::List)
    return error() << "no kernel takes its items from a counter yet; use order = list";
  if (keys % groups != 0)
    return error() << keys << " keys do not divide into " << groups << " groups";
  if (keys / groups % 8 != 0 || rows % 8 != 0)
    return error() << "rows and the keys of a group must be multiples of 8, got " << rows << " and " << keys / groups;
  if (pack != 1 && pack != op.getGroup())
    return error() << "pack is " << pack << ", expected 1 or " << op.getGroup() << ", the query heads of a KV head";
  if (pack > rows)
    return error() << "packs " << pack << " heads into " << rows << " rows; use pack = 1 or more rows";
  if (!target || !target->isGpu())
    return success();
  if (rows % 16 != 0 || keys / groups % 16 != 0)
    return error() << "rows and the keys of a group must be multiples of 16 on " << target->chip << ", got " << rows
                   << " and " << keys / groups;
  if (groups > 1 && config.getWarps() % groups != 0)
    return error() << config.getWarps() << " warps do not divide into " << groups << " groups";
  int64_t warpsOfGroup = config.getWarps() / groups;
  if (rows % (16 * warpsOfGroup) != 0)
    return error() << warpsOfGroup << " warps of 16 rows do not divide " << rows << " rows";
  int64_t consumers = config.getConsumers();
  if (config.getLoad() == LoadPath::Tma && !target->tma)
    return error() << target->chip << " has no tensor copies; use load = gather";
  if (consumers > 0) {
    std::string why = whyNoConsumers(op, rows, keys, *target);
    if (!why.empty())
      return error() << why << "; use consumers = 0 and load = gather";
    if (groups != 1)
      return error() << "consumers do not split keys into groups; use groups = 1 or consumers = 0";
    if (rows % (64 * consumers) != 0 || config.getWarps() != 4 * consumers)
      return error() << consumers << " consumers of 4 warps and " << rows << " rows in 64s, got " << config.getWarps()
                     << " warps; use " << rows / 64 << " consumers and " << rows / 16 << " warps";
  } else if (config.getLoad() == LoadPath::Tma) {
    return error() << "tensor copies are issued for consumers; use consumers > 0 or load = gather";
  }
  if (config.getTurns() && consumers < 2)
    return error() << "turns are between consumers; use turns = false or consumers > 1";
  ConfigNeeds needs = estimateNeeds(op, config, *target);
  if (needs.sharedMemory > target->sharedPerCta)
    return error() << "needs " << needs.sharedMemory << " bytes of shared memory, " << target->chip << " has "
                   << target->sharedPerCta << ", " << needs.sharedMemory - target->sharedPerCta
                   << " too few; use fewer keys, stages or rows";
  int64_t registers = getRegisterLimit(op, config);
  if (needs.registers > registers)
    return error() << "needs about " << needs.registers << " registers a thread, " << target->chip << " has "
                   << registers << ", " << needs.registers - registers
                   << " too few; use fewer keys or rows, or more warps";
  return success();
}
