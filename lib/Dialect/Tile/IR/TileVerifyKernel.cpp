//===- TileVerifyKernel.cpp - verifiers of kernels and roles ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Arguments, levels, layouts (R5) and roles (R7). What concerns the order of
// asynchronous ops stands in TileVerifyAsync.cpp.
//
//===----------------------------------------------------------------------===//

#include "TileVerify.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::tile;
using namespace mlir::tile::rules;

static LogicalResult verifyArguments(KernelOp kernel) {
  llvm::StringSet<> seen;
  for (unsigned i = 0, e = kernel.getNumArguments(); i < e; ++i) {
    Attribute attr = kernel.getArgAttr(i, "tile.arg");
    if (!attr)
      continue;
    auto role = dyn_cast<StringAttr>(attr);
    if (!role)
      return fail(kernel, "kernel_c3") << "argument " << i << " has tile.arg = " << attr << ", expected a string";
    StringRef name = role.getValue();
    bool param = name.starts_with("param:") && name.size() > 6;
    if (!param && !llvm::is_contained(getArgRoles(), name))
      return fail(kernel, "kernel_c3") << "argument " << i << " has the unknown role '" << name
                                       << "', expected a role of the ABI or param:NAME";
    if (!seen.insert(name).second)
      return fail(kernel, "kernel_c4") << "has two arguments of role '" << name << "'";
    Type type = kernel.getArgumentTypes()[i];
    bool fits = param             ? isa<MemRefType>(type) || type.isIntOrIndexOrFloat()
                : name == "items" ? isa<ItemsType>(type)
                : name == "scale" ? type.isF32()
                                  : isa<MemRefType>(type);
    if (!fits)
      return fail(kernel, "kernel_c5") << "argument " << i << " of role '" << name << "' has type " << type
                                       << ", expected "
                                       << (param             ? "a memref or a scalar"
                                           : name == "items" ? "!tile.items"
                                           : name == "scale" ? "f32"
                                                             : "a memref");
  }
  return success();
}

LogicalResult KernelOp::verify() {
  if (!getFunctionType().getResults().empty())
    return fail(*this, "kernel_c1") << "has results, expected none: a kernel writes to its memrefs";
  if (!llvm::hasSingleElement(getBody()))
    return fail(*this, "kernel_c2") << "has " << getBody().getBlocks().size()
                                    << " blocks, expected one: control flow is that of scf";
  if (getBody().front().empty() || !isa<ReturnOp>(getBody().front().back()))
    return fail(*this, "kernel_c2") << "has a body that does not end with tile.return";
  if (failed(verifyArguments(*this)))
    return failure();
  return success();
}

LogicalResult KernelOp::verifyRegions() {
  for (auto *rule : {verifyLevels, verifyLayouts, verifyPending, verifySlots, verifyBalance, verifyCarriedOperands})
    if (failed(rule(*this)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Levels and layouts
//===----------------------------------------------------------------------===//

/// The first level at which an op may appear.
static Level getFirstLevel(Operation *op) {
  if (isa<RolesOp, RoleOp>(op))
    return Level::Specialized;
  if (isa<PipelineOp, ProducerAcquireOp, LoadAsyncOp, SendOp, CommitOp, ConsumerWaitOp, ConsumerReleaseOp, StoreAsyncOp,
          DotAsyncOp, AwaitOp, FillRowsOp, NextItemOp>(op))
    return Level::Pipelined;
  return Level::Logical;
}

LogicalResult rules::verifyLevels(KernelOp kernel) {
  WalkResult result = kernel.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) -> WalkResult {
    if (!isa<TileDialect>(op->getDialect()))
      return WalkResult::advance();
    Level first = getFirstLevel(op);
    if (kernel.getLevel() < first) {
      auto diag = fail(op, "level_c1") << "may not appear in a kernel of level " << stringifyLevel(kernel.getLevel())
                                       << ", expected level " << stringifyLevel(first);
      if (first == Level::Pipelined)
        diag << " or later";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// R5. Shared memory of rank 1 and values that only scalars see need none.
LogicalResult rules::verifyLayouts(KernelOp kernel) {
  Operation *with = nullptr, *without = nullptr;
  auto note = [&](Operation *op, Type type) {
    if (auto pending = dyn_cast<PendingType>(type))
      type = pending.getReg();
    if (auto pipeline = dyn_cast<PipelineType>(type))
      type = pipeline.getSlot();
    if (auto reg = dyn_cast<RegType>(type)) {
      Operation *&seen = reg.getLayout() ? with : without;
      if (!seen)
        seen = op;
    }
    if (auto smem = dyn_cast<SmemType>(type); smem && smem.getRank() > 1) {
      Operation *&seen = smem.getLayout() ? with : without;
      if (!seen)
        seen = op;
    }
  };
  kernel.getBody().walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      note(op, type);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument arg : block.getArguments())
          note(op, arg.getType());
  });
  if (!with || !without)
    return success();
  auto diag = fail(without, "R5") << "has a type without layout in a kernel with layouts";
  diag.attachNote(with->getLoc()) << "this op has a layout";
  return diag;
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

LogicalResult RoleOp::verify() {
  int64_t warps = getWarps(), groups = getGroups();
  if (warps < 1 || groups < 1 || warps * groups > 32)
    return fail(*this, "role_c1") << "has " << groups << " groups of " << warps << " warps, expected 1 to 32 warps";
  if (getBody().getNumArguments() != (groups > 1 ? 1u : 0u) ||
      !llvm::all_of(getBody().getArgumentTypes(), llvm::IsaPred<IndexType>))
    return fail(*this, "role_c2") << "has " << getBody().getNumArguments() << " arguments for " << groups
                                  << " groups, expected one index when there are several groups and none else";
  if (auto registers = getRegisters())
    if (static_cast<int64_t>(*registers) < 24 || *registers > 256 || *registers % 8)
      return fail(*this, "role_c3") << "asks for " << static_cast<int64_t>(*registers)
                                    << " registers, expected a multiple of 8 from 24 to 256";
  return success();
}

LogicalResult RoleOp::verifyRegions() {
  WalkResult result = getBody().walk([&](Operation *op) -> WalkResult {
    for (Value operand : op->getOperands())
      if (!getBody().isAncestor(operand.getParentRegion()) && isa<RegType, SmemType, PendingType>(operand.getType())) {
        fail(op, "R7") << "uses a value of type " << operand.getType()
                       << " from outside of its role, expected scalars, memrefs, views and pipelines only";
        return WalkResult::interrupt();
      }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// The role that holds `op` directly or deeper.
static RoleOp getRole(Operation *op) { return op->getParentOfType<RoleOp>(); }

/// The number of groups that give stages to the pipeline and that take them away is what the pipeline says.
static LogicalResult verifyGroups(PipelineOp pipeline) {
  llvm::SmallSetVector<Operation *, 4> producers, consumers;
  for (Operation *user : pipeline.getResult().getUsers()) {
    if (auto chained = dyn_cast<PipelineOp>(user)) {
      for (Operation *next : chained.getResult().getUsers())
        if (isa<CommitOp>(next))
          if (RoleOp role = getRole(next))
            consumers.insert(role);
      continue;
    }
    RoleOp role = getRole(user);
    if (!role)
      return fail(user, "roles_c4") << "uses a pipeline outside of the roles";
    if (isa<LoadAsyncOp, CommitOp>(user))
      producers.insert(role);
    if (isa<ConsumerReleaseOp>(user))
      consumers.insert(role);
  }
  auto count = [](auto &roles) {
    int64_t groups = 0;
    for (Operation *role : roles)
      groups += cast<RoleOp>(role).getGroups();
    return groups;
  };
  if (count(producers) != static_cast<int64_t>(pipeline.getProducers()))
    return fail(pipeline, "roles_c5") << "says that " << pipeline.getProducers() << " groups fill it, but "
                                      << count(producers) << " do";
  if (count(consumers) != static_cast<int64_t>(pipeline.getConsumers()))
    return fail(pipeline, "roles_c6") << "says that " << pipeline.getConsumers() << " groups give its stages back, but "
                                      << count(consumers) << " do";
  return success();
}

LogicalResult RolesOp::verify() {
  if (!isa_and_nonnull<KernelOp>((*this)->getParentOp()))
    return fail(*this, "roles_c1") << "is not at the top of a kernel";
  llvm::StringSet<> names;
  for (Operation &op : getBody().front()) {
    auto role = dyn_cast<RoleOp>(op);
    if (!role)
      return fail(&op, "roles_c2") << "stands between roles, expected tile.role";
    if (!names.insert(role.getName()).second)
      return fail(role, "roles_c2") << "has a name that another role has";
  }
  if (names.empty())
    return fail(*this, "roles_c2") << "has no roles";
  for (Operation &op : *(*this)->getBlock())
    if (isa<RolesOp>(op) && &op != *this)
      return fail(*this, "roles_c1") << "stands beside another roles op";
  return success();
}

LogicalResult RolesOp::verifyRegions() {
  int64_t warps = 0;
  for (auto role : getBody().getOps<RoleOp>())
    warps += static_cast<int64_t>(role.getWarps()) * static_cast<int64_t>(role.getGroups());
  if (warps > 32)
    return fail(*this, "roles_c3") << "has " << warps << " warps in all, expected at most 32";
  for (Operation &op : *(*this)->getBlock())
    if (auto pipeline = dyn_cast<PipelineOp>(op))
      if (failed(verifyGroups(pipeline)))
        return failure();
  return success();
}
