//===- Interpreter.cpp - control flow of kernels ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Walks a kernel: scf, items, and the dispatch to the ops of the other files.
//
//===----------------------------------------------------------------------===//

#include "Machine.h"

using namespace mlir;
using namespace mlir::tile;
using namespace mlir::tile::interp;

static int64_t getField(const AttnWorkItem &item, StringRef name) {
  int64_t offset = getItemFieldOffset(name);
  if (name == "table") {
    int64_t value;
    memcpy(&value, reinterpret_cast<const char *>(&item) + offset, 8);
    return value;
  }
  int32_t value;
  memcpy(&value, reinterpret_cast<const char *>(&item) + offset, 4);
  return value;
}

bool Task::runForEach(ForEachOp op) {
  const KernelArguments &arguments = machine.arguments;
  for (int32_t i = arguments.ctaIndptr[machine.cta]; i < arguments.ctaIndptr[machine.cta + 1]; ++i) {
    for (auto [arg, field] : llvm::zip(op.getBody().getArguments(), op.getFields()))
      get(arg).word.i = getField(arguments.items[i], cast<StringAttr>(field).getValue());
    if (!run(op.getBody().front()))
      return false;
  }
  return true;
}

bool Task::runNextItem(NextItemOp op) {
  const KernelArguments &arguments = machine.arguments;
  int64_t i = arguments.ctaIndptr[machine.cta] + item++;
  bool some = i < arguments.ctaIndptr[machine.cta + 1];
  get(op.getSome()).word.i = some;
  for (auto [value, field] : llvm::zip(op.getValues(), op.getFields()))
    get(value).word.i = some ? getField(arguments.items[i], cast<StringAttr>(field).getValue()) : 0;
  return true;
}

bool Task::runFor(scf::ForOp op) {
  int64_t lo = getInt(op.getLowerBound()), hi = getInt(op.getUpperBound()), step = getInt(op.getStep());
  if (step <= 0)
    return fail(op, "has a step that is not positive");
  SmallVector<Val> carried;
  for (Value init : op.getInitArgs())
    carried.push_back(get(init));
  for (int64_t i = lo; i < hi; i += step) {
    get(op.getInductionVar()).word.i = i;
    for (auto [arg, val] : llvm::zip(op.getRegionIterArgs(), carried))
      get(arg) = val;
    if (!run(*op.getBody()))
      return false;
    carried = yielded;
  }
  for (auto [result, val] : llvm::zip(op.getResults(), carried))
    get(result) = val;
  return true;
}

bool Task::runIf(scf::IfOp op) {
  Region &region = getInt(op.getCondition()) ? op.getThenRegion() : op.getElseRegion();
  if (region.empty())
    return true;
  if (!run(region.front()))
    return false;
  SmallVector<Val> values = yielded;
  for (auto [result, val] : llvm::zip(op.getResults(), values))
    get(result) = val;
  return true;
}

bool Task::runWhile(scf::WhileOp op) {
  SmallVector<Val> carried;
  for (Value init : op.getInits())
    carried.push_back(get(init));
  while (true) {
    for (auto [arg, val] : llvm::zip(op.getBeforeArguments(), carried))
      get(arg) = val;
    if (!run(*op.getBeforeBody()))
      return false;
    carried.clear();
    for (Value arg : op.getConditionOp().getArgs())
      carried.push_back(get(arg));
    if (!getInt(op.getConditionOp().getCondition()))
      break;
    for (auto [arg, val] : llvm::zip(op.getAfterArguments(), carried))
      get(arg) = val;
    if (!run(*op.getAfterBody()))
      return false;
    carried = yielded;
  }
  for (auto [result, val] : llvm::zip(op.getResults(), carried))
    get(result) = val;
  return true;
}

/// arith, math, memref.load and calls, on scalars.
bool Task::runScalar(Operation *op) {
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    Val val = get(getInt(select.getCondition()) ? select.getTrueValue() : select.getFalseValue());
    get(select.getResult()) = val;
    return true;
  }
  auto [it, fresh] = decoded.try_emplace(op);
  Instr &instr = it->second;
  if (fresh) {
    decode(op, instr);
    int slot = 0;
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      instr.in.push_back(slot++);
    for (unsigned i = 0; i < op->getNumResults(); ++i)
      instr.out.push_back(slot++);
    bool scalar = llvm::all_of(op->getResultTypes(), [](Type type) { return type.isIntOrIndexOrFloat(); });
    if (instr.kind < 0 || !scalar || op->getNumRegions())
      return fail(op, Twine("'") + op->getName().getStringRef() + "' is not known to the interpreter");
    if (auto call = dyn_cast<func::CallOp>(op)) {
      auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(op, call.getCalleeAttr());
      if (!callee || callee.isExternal() || !llvm::hasSingleElement(callee.getBody()))
        return fail(op, "calls a function that has no body of one block");
      Body *body = machine.compiler.get(callee.getBody().front(), machine.failure);
      if (!body)
        return false;
      instr.callee = &body->code;
      instr.frameSize = body->frame;
    }
  }
  SmallVector<Word, 8> frame(instr.in.size() + instr.out.size(), Word{});
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    frame[i] = get(operand).word;
  if (!runInstr(instr, frame, machine.failure, machine.steps))
    return false;
  for (auto [i, result] : llvm::enumerate(op->getResults()))
    get(result).word = frame[instr.out[i]];
  return true;
}

bool Task::runOp(Operation *op) {
  if (--machine.steps < 0)
    return fail(op, "runs endlessly (more steps than the interpreter's limit)");
  return TypeSwitch<Operation *, bool>(op)
      .Case<scf::ForOp>([&](auto o) { return runFor(o); })
      .Case<scf::IfOp>([&](auto o) { return runIf(o); })
      .Case<scf::WhileOp>([&](auto o) { return runWhile(o); })
      .Case<ForEachOp>([&](auto o) { return runForEach(o); })
      .Case<NextItemOp>([&](auto o) { return runNextItem(o); })
      .Case<RolesOp>([&](auto o) { return machine.runRoles(o, *this); })
      .Case<ViewOp>([&](auto o) { return runView(o); })
      .Case<ExtentOp>([&](auto o) { return runExtent(o); })
      .Case<ScanOp>([&](auto o) { return runScan(o); })
      .Case<LoadOp>([&](auto o) { return runLoad(o); })
      .Case<StoreOp>([&](auto o) { return runStore(o); })
      .Case<LocalLoadOp>([&](auto o) { return runLocalLoad(o); })
      .Case<LocalStoreOp>([&](auto o) { return runLocalStore(o); })
      .Case<TransformOp>([&](auto o) { return runTransform(o); })
      .Case<SubviewOp>([&](auto o) { return runSubview(o); })
      .Case<FillRowsOp>([&](auto o) { return runFillRows(o); })
      .Case<SplatOp>([&](auto o) { return runSplat(o); })
      .Case<MapOp>([&](auto o) { return runMap(o); })
      .Case<MaskOp>([&](auto o) { return runMask(o); })
      .Case<ReduceOp>([&](auto o) { return runReduce(o); })
      .Case<DotOp>([&](DotOp o) {
        Val a = get(o.getA()), b = get(o.getB()), acc, out;
        if (o.getAcc())
          acc = get(o.getAcc());
        if (!runDot(o, a, b, acc.tile.get(), o.getTransposeB(), cast<RegType>(o.getResult().getType()), out))
          return false;
        get(o.getResult()) = out;
        return true;
      })
      .Case<SliceOp>([&](auto o) { return runSlice(o); })
      .Case<ConcatOp>([&](auto o) { return runConcat(o); })
      .Case<SwapPairsOp>([&](auto o) { return runSwapPairs(o); })
      .Case<ConvertLayoutOp>([&](ConvertLayoutOp o) {
        Val val = get(o.getSource());
        get(o.getResult()) = val;
        return true;
      })
      .Case<PipelineOp>([&](auto o) { return runPipeline(o); })
      .Case<ProducerAcquireOp>([&](auto o) { return runAcquire(o); })
      .Case<LoadAsyncOp>([&](auto o) { return runLoadAsync(o); })
      .Case<SendOp>([&](auto o) { return runSend(o); })
      .Case<CommitOp>([&](auto o) { return runCommit(o); })
      .Case<ConsumerWaitOp>([&](auto o) { return runWait(o); })
      .Case<ConsumerReleaseOp>([&](auto o) { return runRelease(o); })
      .Case<StoreAsyncOp>([&](auto o) { return runStoreAsync(o); })
      .Case<DotAsyncOp>([&](auto o) { return runDotAsync(o); })
      .Case<AwaitOp>([&](auto o) { return runAwait(o); })
      .Default([&](Operation *o) { return runScalar(o); });
}

bool Task::run(Block &block) {
  for (Operation &op : block) {
    if (isa<ReturnOp, YieldOp, scf::YieldOp, scf::ConditionOp>(op)) {
      SmallVector<Val> values;
      for (Value operand : op.getOperands())
        values.push_back(get(operand));
      yielded = std::move(values);
      return true;
    }
    if (!runOp(&op))
      return false;
  }
  return true;
}

bool Machine::runCta(KernelOp kernel, int64_t number) {
  cta = number;
  undefinedTails = kernel.getLevel() == Level::Specialized;
  pipes.clear();
  Task task(*this);
  for (auto [arg, word] : llvm::zip(kernel.getBody().getArguments(), arguments.values))
    task.env[arg].word = word;
  return task.run(kernel.getBody().front()) && task.finish(kernel) && checkPipes();
}

LogicalResult tile::interpret(KernelOp kernel, const KernelArguments &arguments, const InterpreterOptions &options) {
  if (arguments.values.size() != kernel.getNumArguments())
    return kernel.emitOpError() << "is run with " << arguments.values.size() << " arguments, expected "
                                << kernel.getNumArguments();
  for (auto [i, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    auto memref = dyn_cast<MemRefType>(type);
    if (!memref)
      continue;
    Buffer *buffer = arguments.values[i].p;
    bool fits = buffer && buffer->element == memref.getElementType() &&
                static_cast<int64_t>(buffer->shape.size()) == memref.getRank();
    for (int64_t d = 0; fits && d < memref.getRank(); ++d)
      fits = memref.isDynamicDim(d) || memref.getDimSize(d) == buffer->shape[d];
    if (!fits)
      return kernel.emitOpError() << "is run with a buffer that does not fit the type of argument " << i;
  }
  Compiler compiler;
  Machine machine(arguments, options, compiler);
  for (int64_t cta = 0; cta + 1 < static_cast<int64_t>(arguments.ctaIndptr.size()); ++cta) {
    machine.steps = options.maxSteps;
    if (machine.runCta(kernel, cta))
      continue;
    if (!machine.failure)
      return kernel.emitOpError() << "failed in the interpreter";
    return emitError(machine.failure->loc) << "interpreter: " << machine.failure->message;
  }
  return success();
}
