//===- Emitter.cpp - values, arguments and counters of the emitter ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"
#include "attn/Dialect/Tile/Transforms/SharedMemory.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::tile;

static constexpr llvm::StringLiteral kSharedSymbol = "attn_shared";

Emitter::Emitter(KernelOp kernel, const ::attn::TargetInfo &target, OpBuilder builder)
    : b(builder), loc(kernel.getLoc()), context(kernel.getContext()), target(target), kernel(kernel) {
  i1 = b.getI1Type(), i8 = b.getI8Type(), i16 = b.getI16Type(), i32 = b.getI32Type(), i64 = b.getI64Type(),
  f32 = b.getF32Type();
  generic = LLVM::LLVMPointerType::get(context);
  global = LLVM::LLVMPointerType::get(context, 1);
  shared = LLVM::LLVMPointerType::get(context, 3);
}

//===----------------------------------------------------------------------===//
// Blocks and ops
//===----------------------------------------------------------------------===//

Block *Emitter::newBlock(TypeRange types) {
  Block *block = new Block();
  region->push_back(block);
  for (Type type : types)
    block->addArgument(type, loc);
  return block;
}

void Emitter::enter(Block *block) {
  local.clear();
  b.setInsertionPointToEnd(block);
}

OpBuilder::InsertPoint Emitter::toEntry(Block *block) {
  OpBuilder::InsertPoint here = b.saveInsertionPoint();
  local.clear();
  if (!block->empty() && block->back().hasTrait<OpTrait::IsTerminator>())
    b.setInsertionPoint(&block->back());
  else
    b.setInsertionPointToEnd(block);
  return here;
}

LogicalResult Emitter::emitBlock(Block &block) {
  for (Operation &op : block) {
    if (op.hasTrait<OpTrait::IsTerminator>())
      break;
    if (failed(emitOp(&op)))
      return failure();
  }
  return success();
}

LogicalResult Emitter::emitOp(Operation *op) {
  auto found = typed.find(op->getName().getStringRef());
  if (found == typed.end())
    return op->emitError() << "'" << op->getName() << "' has no code on " << target.chip << " at level "
                           << stringifyLevel(kernel.getLevel());
  Location outer = loc;
  loc = op->getLoc();
  LogicalResult result = found->second(*this, op);
  loc = outer;
  return result;
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

static std::optional<int64_t> constantOf(Value v) {
  if (auto c = v.getDefiningOp<LLVM::ConstantOp>())
    if (auto attr = dyn_cast<IntegerAttr>(c.getValue()))
      return attr.getValue().getSExtValue();
  return std::nullopt;
}

static Value reuseConstant(Emitter &e, DenseMap<std::tuple<void *, void *, int64_t>, Value> &local, Type type,
                           Attribute attr) {
  Value &v = local[{const_cast<void *>(type.getAsOpaquePointer()), const_cast<void *>(attr.getAsOpaquePointer()), -1}];
  if (!v)
    v = LLVM::ConstantOp::create(e.b, e.loc, type, cast<TypedAttr>(attr));
  return v;
}
Value Emitter::c32(int64_t v) {
  return reuseConstant(*this, local, i32, IntegerAttr::get(i32, APInt(32, static_cast<uint64_t>(v), true, true)));
}
Value Emitter::c64(int64_t v) { return reuseConstant(*this, local, i64, b.getI64IntegerAttr(v)); }
Value Emitter::c1(bool v) { return reuseConstant(*this, local, i1, IntegerAttr::get(i1, v)); }
Value Emitter::cf32(float v) { return reuseConstant(*this, local, f32, b.getF32FloatAttr(v)); }

enum { kAdd, kSub, kMul, kAnd, kXor, kOr, kShr, kAddSaturated, kReciprocal, kFlushedReciprocal, kCmp = 100 };

template <typename OpT>
static Value plainOp(Emitter &e, DenseMap<std::tuple<void *, void *, int64_t>, Value> &local, int64_t code, Value a,
                     Value c) {
  Value &v = local[{a.getAsOpaquePointer(), c.getAsOpaquePointer(), code}];
  if (!v)
    v = OpT::create(e.b, e.loc, a.getType(), a, c);
  return v;
}
static int64_t wrap(Type type, int64_t v) { return type.isInteger(32) ? static_cast<int32_t>(v) : v; }
static Value constantLike(Emitter &e, Type type, int64_t v) { return type.isInteger(64) ? e.c64(v) : e.c32(v); }

Value Emitter::add(Value a, Value c) {
  auto x = constantOf(a), y = constantOf(c);
  if (x && y)
    return constantLike(*this, a.getType(), wrap(a.getType(), *x + *y));
  if (x && *x == 0)
    return c;
  if (y && *y == 0)
    return a;
  return plainOp<LLVM::AddOp>(*this, local, kAdd, a, c);
}
Value Emitter::sub(Value a, Value c) {
  auto x = constantOf(a), y = constantOf(c);
  if (x && y)
    return constantLike(*this, a.getType(), wrap(a.getType(), *x - *y));
  if (y && *y == 0)
    return a;
  return plainOp<LLVM::SubOp>(*this, local, kSub, a, c);
}
Value Emitter::mul(Value a, Value c) {
  auto x = constantOf(a), y = constantOf(c);
  if (x && y)
    return constantLike(*this, a.getType(), wrap(a.getType(), *x * *y));
  if ((x && *x == 0) || (y && *y == 1))
    return a;
  if ((y && *y == 0) || (x && *x == 1))
    return c;
  return plainOp<LLVM::MulOp>(*this, local, kMul, a, c);
}
Value Emitter::bitAnd(Value a, Value c) {
  auto x = constantOf(a), y = constantOf(c);
  if (x && y && !a.getType().isInteger(1))
    return constantLike(*this, a.getType(), *x & *y);
  return plainOp<LLVM::AndOp>(*this, local, kAnd, a, c);
}
Value Emitter::bitXor(Value a, Value c) { return plainOp<LLVM::XOrOp>(*this, local, kXor, a, c); }
Value Emitter::bitOr(Value a, Value c) { return plainOp<LLVM::OrOp>(*this, local, kOr, a, c); }
Value Emitter::shr(Value a, int64_t by) {
  if (by == 0)
    return a;
  return plainOp<LLVM::LShrOp>(*this, local, kShr, a, constantLike(*this, a.getType(), by));
}
Value Emitter::compare(LLVM::ICmpPredicate predicate, Value a, Value c) {
  Value &v = local[{a.getAsOpaquePointer(), c.getAsOpaquePointer(), kCmp + static_cast<int64_t>(predicate)}];
  if (!v)
    v = LLVM::ICmpOp::create(b, loc, predicate, a, c);
  return v;
}
Value Emitter::reciprocal(Value divisor, bool flushes) {
  Value &v = local[{divisor.getAsOpaquePointer(), nullptr, flushes ? kFlushedReciprocal : kReciprocal}];
  if (!v)
    v = ptx(flushes ? "rcp.approx.ftz.f32 $0, $1;" : "rcp.approx.f32 $0, $1;", "=f,f", divisor, f32,
            /*effects=*/false)[0];
  return v;
}
Value Emitter::addSaturated(Value a, Value c) { return plainOp<LLVM::SAddSat>(*this, local, kAddSaturated, a, c); }
Value Emitter::select(Value condition, Value a, Value c) {
  Value &v = local[{a.getAsOpaquePointer(), c.getAsOpaquePointer(),
                    static_cast<int64_t>(reinterpret_cast<intptr_t>(condition.getAsOpaquePointer()))}];
  if (!v)
    v = LLVM::SelectOp::create(b, loc, condition, a, c);
  return v;
}

Regs Emitter::ptx(StringRef code, StringRef constraints, ValueRange operands, TypeRange results, bool effects) {
  Type result;
  if (results.size() == 1)
    result = results[0];
  else if (results.size() > 1)
    result = LLVM::LLVMStructType::getLiteral(context, llvm::to_vector(results));
  SmallVector<Type> resultTypes;
  if (result)
    resultTypes.push_back(result);
  auto dialect = LLVM::AsmDialectAttr::get(context, LLVM::AsmDialect::AD_ATT);
  auto op =
      LLVM::InlineAsmOp::create(b, loc, resultTypes, operands, code, constraints, effects, /*is_align_stack=*/false,
                                LLVM::tailcallkind::TailCallKind::None, dialect, ArrayAttr());
  Regs out;
  if (results.size() == 1) {
    out.push_back(op->getResult(0));
  } else {
    for (size_t i = 0; i < results.size(); ++i)
      out.push_back(LLVM::ExtractValueOp::create(b, loc, op->getResult(0), static_cast<int64_t>(i)));
  }
  return out;
}

Value Emitter::intrinsic(StringRef name, ValueRange operands, Type result) {
  return LLVM::CallIntrinsicOp::create(b, loc, result, b.getStringAttr(name), operands)->getResult(0);
}
void Emitter::callNone(StringRef name, ValueRange operands) {
  LLVM::CallIntrinsicOp::create(b, loc, b.getStringAttr(name), operands);
}

Value Emitter::shuffleXor(Value v, int64_t mask) {
  Type type = v.getType();
  return NVVM::ShflOp::create(b, loc, type, c32(-1), v, c32(mask), c32(31), NVVM::ShflKind::bfly, UnitAttr());
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Value Emitter::materialize(Index i) {
  if (!i.base)
    return c32(i.offset);
  return add(i.base, constantLike(*this, i.base.getType(), i.offset));
}
Value Emitter::narrow(Index i) {
  Value v = materialize(i);
  return v.getType().isInteger(64) ? Value(LLVM::TruncOp::create(b, loc, i32, v)) : v;
}
Value Emitter::widen(Index i) {
  if (!i.base)
    return c64(i.offset);
  if (i.base.getType().isInteger(64))
    return materialize(i);
  Value v = materialize(i);
  Value &known = local[{v.getAsOpaquePointer(), nullptr, -2}];
  if (!known)
    known = LLVM::SExtOp::create(b, loc, i64, v);
  return known;
}
Index Emitter::addIndex(Index a, Index c) {
  if (!a.base)
    return {c.base, a.offset + c.offset};
  if (!c.base)
    return {a.base, a.offset + c.offset};
  if (a.base.getType() == c.base.getType())
    return {add(a.base, c.base), a.offset + c.offset};
  return {add(widen({a.base, 0}), widen({c.base, 0})), a.offset + c.offset};
}

Value Emitter::scalar(Value v) {
  if (v.getType().isIndex())
    return materialize(index(v));
  auto found = scalars.find(v);
  assert(found != scalars.end() && "a value was used before it was written");
  return found->second;
}
Index Emitter::index(Value v) {
  auto found = indices.find(v);
  assert(found != indices.end() && "an index was used before it was written");
  return found->second;
}
Regs &Emitter::reg(Value v) {
  auto found = regs.find(v);
  assert(found != regs.end() && "a tile was used before it was written");
  return found->second;
}
Pipeline &Emitter::pipeline(Value v) { return *pipelines.find(v)->second; }

const Fragment &Emitter::fragment(Type type) {
  auto found = fragments.find(type);
  if (found != fragments.end())
    return found->second;
  // Checked before any code is written (see run).
  return fragments.try_emplace(type, *Fragment::get(cast<RegType>(type))).first->second;
}

/// Type of one register of a tile.
static Type registerType(Emitter &e, RegType type) {
  if (e.fragment(type).getPack() == 2)
    return e.i32;
  Type element = type.getElementType();
  return element.isIndex() ? e.i32 : element;
}

LogicalResult Emitter::flatTypes(Value v, SmallVectorImpl<Type> &out) {
  Type type = v.getType();
  if (auto reg = dyn_cast<RegType>(type))
    out.append(fragment(reg).getNumRegisters(), registerType(*this, reg));
  else if (type.isIndex())
    out.push_back(isWide(v) ? i64 : i32);
  else if (isa<SmemType>(type))
    out.push_back(i32);
  else if (type.isIntOrFloat())
    out.push_back(type);
  else
    return emitError(loc) << "a value of type " << type << " cannot be carried through control flow";
  return success();
}
LogicalResult Emitter::flatten(Value v, Regs &out) {
  Type type = v.getType();
  if (isa<RegType>(type))
    llvm::append_range(out, reg(v));
  else if (type.isIndex())
    out.push_back(materialize(index(v)));
  else if (isa<SmemType>(type)) {
    const Smem &s = smems.find(v)->second;
    if (s.whole != s.type)
      return emitError(loc) << "a part of a stage cannot be carried through control flow; carry the stage";
    if (s.rowGroups)
      return emitError(loc) << "a stage by groups of rows cannot be carried through control flow; drop '" << kRowGroups
                            << "'";
    out.push_back(add(smemOffset(s), c32(s.base)));
  } else if (type.isIntOrFloat())
    out.push_back(scalar(v));
  else
    return emitError(loc) << "a value of type " << type << " cannot be carried through control flow";
  return success();
}
LogicalResult Emitter::bind(Value v, ArrayRef<Value> &in) {
  Type type = v.getType();
  auto take = [&](size_t n) {
    ArrayRef<Value> part = in.take_front(n);
    in = in.drop_front(n);
    return part;
  };
  if (auto reg = dyn_cast<RegType>(type)) {
    ArrayRef<Value> part = take(fragment(reg).getNumRegisters());
    regs[v] = Regs(part.begin(), part.end());
  } else if (type.isIndex()) {
    indices[v] = {take(1)[0], 0};
  } else if (auto smem = dyn_cast<SmemType>(type)) {
    Smem s;
    s.type = s.whole = smem;
    s.stage = take(1)[0];
    smems[v] = s;
  } else {
    scalars[v] = take(1)[0];
  }
  return success();
}
LogicalResult Emitter::alias(Value v, Value as) {
  Type type = v.getType();
  if (isa<RegType>(type)) {
    Regs copy = reg(as);
    regs[v] = copy;
  } else if (type.isIndex()) {
    Index i = index(as);
    indices[v] = i;
  } else if (isa<SmemType>(type)) {
    Smem s = smems.find(as)->second;
    smems[v] = s;
  } else if (isa<ViewType>(type)) {
    View view = views.find(as)->second;
    views[v] = view;
  } else if (type.isIntOrFloat()) {
    scalars[v] = scalar(as);
  } else {
    return emitError(loc) << "a value of type " << type << " cannot leave its region";
  }
  return success();
}

/// Indices are 32 bits wide except where that could lose something, and wherever those flow: the item's `table` field,
/// constants and values of memory that need 64 bits, products of two variables within a hook.
static bool startsWide(Operation *op) {
  if (op->getNumResults() != 1 || !op->getResult(0).getType().isIndex())
    return false;
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return !llvm::isInt<32>(cast<IntegerAttr>(constant.getValue()).getInt());
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp>(op))
    return op->getOperand(0).getType().isInteger(64);
  if (!isa<arith::MulIOp>(op) || llvm::any_of(op->getOperands(), [](Value v) { return matchPattern(v, m_Constant()); }))
    return false;
  // Within a hook, at any depth, or within a function that one calls.
  for (Operation *at = op; at && !isa<KernelOp>(at); at = at->getParentOp())
    if (isa<func::FuncOp>(at) || isa<tile::YieldOp>(at->getBlock()->getTerminator()))
      return true;
  return false;
}

void Emitter::findWide() {
  SmallVector<Value> work;
  auto mark = [&](Value v) {
    if (v.getType().isIndex() && wide.insert(v).second)
      work.push_back(v);
  };
  auto fields = [&](ArrayAttr names, ValueRange values) {
    for (auto [name, value] : llvm::zip_equal(names, values))
      if (cast<StringAttr>(name).getValue() == "table")
        mark(value);
  };
  auto spread = [&](Operation *root) {
    while (!work.empty()) {
      Value v = work.pop_back_val();
      for (OpOperand &use : v.getUses()) {
        Operation *user = use.getOwner();
        unsigned n = use.getOperandNumber();
        if (isa<arith::ArithDialect>(user->getDialect())) {
          for (Value result : user->getResults())
            mark(result);
        } else if (auto loop = dyn_cast<scf::ForOp>(user)) {
          if (n >= 3) {
            mark(loop.getRegionIterArgs()[n - 3]);
            mark(loop.getResult(n - 3));
          }
        } else if (auto loop = dyn_cast<scf::WhileOp>(user)) {
          mark(loop.getBeforeArguments()[n]);
        } else if (auto condition = dyn_cast<scf::ConditionOp>(user)) {
          auto loop = cast<scf::WhileOp>(condition->getParentOp());
          if (n >= 1) {
            mark(loop.getAfterArguments()[n - 1]);
            mark(loop.getResult(n - 1));
          }
        } else if (isa<scf::YieldOp>(user)) {
          Operation *parent = user->getParentOp();
          if (auto loop = dyn_cast<scf::ForOp>(parent)) {
            mark(loop.getRegionIterArgs()[n]);
            mark(loop.getResult(n));
            mark(loop.getInitArgs()[n]); // the first value is widened too
          } else if (auto loop = dyn_cast<scf::WhileOp>(parent)) {
            mark(loop.getBeforeArguments()[n]);
          } else {
            mark(parent->getResult(n));
          }
        }
      }
    }
  };
  kernel.walk([&](Operation *op) {
    if (auto each = dyn_cast<ForEachOp>(op))
      fields(each.getFields(), each.getBody().getArguments());
    else if (auto next = dyn_cast<NextItemOp>(op))
      fields(next.getFields(), next.getValues());
    else if (startsWide(op))
      mark(op->getResult(0));
  });
  // Functions are written in place of their calls; 64-bit arguments and results arrive there as such.
  SmallVector<Operation *> bodies = {kernel};
  llvm::SmallPtrSet<Operation *, 4> known;
  while (!bodies.empty())
    bodies.pop_back_val()->walk([&](func::CallOp call) {
      auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
      if (!callee || !known.insert(callee).second)
        return;
      bodies.push_back(callee);
      callee.walk([&](Operation *op) {
        if (startsWide(op))
          mark(op->getResult(0));
      });
    });
  spread(kernel);
}

//===----------------------------------------------------------------------===//
// Kernel arguments
//===----------------------------------------------------------------------===//

Value Emitter::word(DictionaryAttr record, Type type) {
  Value &value = wordValues[record];
  if (value)
    return value;
  value = entry->insertArgument(numWords++, type, loc);
  words.push_back(record);
  return value;
}

static DictionaryAttr wordRecord(Emitter &e, StringRef kind, StringRef operand, std::optional<int64_t> dim = {}) {
  NamedAttrList list;
  list.append("kind", e.b.getStringAttr(kind));
  if (!operand.empty())
    list.append(kind == "param" ? "name" : "operand", e.b.getStringAttr(operand));
  if (dim)
    list.append("dim", e.b.getI64IntegerAttr(*dim));
  return list.getDictionary(e.context);
}

Value Emitter::pointer(Value memref) { return word(wordRecord(*this, "pointer", role(memref)), global); }
Value Emitter::stride(Value memref, int64_t dim) {
  auto [strides, offset] = cast<MemRefType>(memref.getType()).getStridesAndOffset();
  if (!ShapedType::isDynamic(strides[dim]))
    return c64(strides[dim]);
  return word(wordRecord(*this, "stride", role(memref), dim), i64);
}
Value Emitter::sizeOf(Value memref, int64_t dim) {
  auto type = cast<MemRefType>(memref.getType());
  if (!type.isDynamicDim(dim))
    return c64(type.getDimSize(dim));
  return word(wordRecord(*this, "size", role(memref), dim), i64);
}
Value Emitter::itemsPointer(Value) { return word(wordRecord(*this, "pointer", "items"), global); }
Value Emitter::itemsBounds(Value) { return word(wordRecord(*this, "pointer", "cta_indptr"), global); }

Value Emitter::tensorMap(DictionaryAttr record) {
  Value &value = mapValues[record];
  if (!value) {
    value = entry->addArgument(generic, loc);
    maps.push_back(record);
  }
  return value;
}

//===----------------------------------------------------------------------===//
// Threads and shared memory
//===----------------------------------------------------------------------===//

Value Emitter::lanePart(const LanePart &part) {
  if (part.isZero())
    return {};
  for (auto &[known, value] : laneParts)
    if (known == part)
      return value;
  OpBuilder::InsertPoint here = toEntry(group.entry);
  auto piece = [&](Value v, int64_t div, int64_t mod, int64_t factor, int64_t extent) -> Value {
    if (factor == 0 || mod == 1)
      return {};
    if (div > 1)
      v = llvm::isPowerOf2_64(div) ? shr(v, llvm::Log2_64(div)) : plainOp<LLVM::UDivOp>(*this, local, 50, v, c32(div));
    if (div * mod < extent)
      v = llvm::isPowerOf2_64(mod) ? bitAnd(v, c32(mod - 1)) : plainOp<LLVM::URemOp>(*this, local, 51, v, c32(mod));
    return mul(v, c32(factor));
  };
  Value lanes = piece(group.lane, part.laneDiv, part.laneMod, part.laneMul, 32);
  Value warps = piece(group.warp, part.warpDiv, part.warpMod, part.warpMul, group.warps);
  Value value = lanes && warps ? add(warps, lanes) : lanes ? lanes : warps ? warps : c32(0);
  b.restoreInsertionPoint(here);
  local.clear();
  laneParts.push_back({part, value});
  laneMax[value] = (part.laneMod - 1) * part.laneMul + (part.warpMod - 1) * part.warpMul;
  return value;
}

Value Emitter::hideLanePart(Value value) {
  Value hidden = ptx("mov.b32 $0, $1;", "=r,r", value, i32)[0];
  laneMax[hidden] = laneMax.lookup(value);
  return hidden;
}

void Emitter::hideLaneParts(ArrayRef<LanePart> parts) {
  SmallVector<std::pair<LanePart, Value>> hidden;
  for (const LanePart &part : parts)
    if (Value value = lanePart(part))
      hidden.push_back({part, hideLanePart(value)});
  shownLaneParts = laneParts;
  laneParts = hidden;
}
void Emitter::restoreLaneParts() { laneParts = shownLaneParts; }

Index Emitter::coordinate(const Fragment &f, int64_t e, int64_t d) {
  return {lanePart(f.getLanePart(d)), f.getOffsets(e)[d]};
}

void Emitter::sync() {
  if (group.single)
    return;
  if (group.warps == 1) {
    NVVM::SyncWarpOp::create(b, loc, c32(-1));
    return;
  }
  if (group.barrier == 0) {
    NVVM::BarrierOp::create(b, loc);
    return;
  }
  Value id = c32(group.barrier);
  if (group.number)
    id = add(group.number, id);
  NVVM::BarrierOp::create(b, loc, TypeRange(), id, c32(32 * group.warps), NVVM::BarrierReductionAttr(), Value());
}

Value Emitter::smemBase() {
  Value &pointer = local[{nullptr, nullptr, -10}];
  if (!pointer)
    pointer = LLVM::AddressOfOp::create(b, loc, shared, kSharedSymbol);
  return pointer;
}
Value Emitter::smemStart() {
  if (!smemStartValue) {
    OpBuilder::InsertPoint here = toEntry(entry);
    smemStartValue = LLVM::PtrToIntOp::create(b, loc, i32, smemBase());
    b.restoreInsertionPoint(here);
    local.clear();
  }
  return smemStartValue;
}
Value Emitter::smemPointer(Value bytes, int64_t constant) {
  if (bytes) {
    if (auto c = constantOf(bytes)) {
      constant += *c;
      bytes = {};
    }
  }
  Value base = smemBase();
  if (bytes)
    return LLVM::GEPOp::create(b, loc, shared, i8, base, ArrayRef<LLVM::GEPArg>{add(bytes, c32(constant))});
  if (constant == 0)
    return base;
  return LLVM::GEPOp::create(b, loc, shared, i8, base, ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(constant)});
}
Value Emitter::smemOffset(const Smem &s) {
  if (s.stage && s.rows)
    return add(s.stage, s.rows);
  return s.stage ? s.stage : s.rows ? s.rows : c32(0);
}

//===----------------------------------------------------------------------===//
// Counters
//===----------------------------------------------------------------------===//

Index &Emitter::counter(Value of, Counter kind) { return counters[{of, kind}]; }

std::pair<Value, Value> Emitter::ringStage(Index k, int64_t stages) {
  Value v = materialize(k);
  if (stages == 1)
    return {c32(0), bitAnd(v, c32(1))};
  if (llvm::isPowerOf2_64(stages))
    return {bitAnd(v, c32(stages - 1)), bitAnd(shr(v, llvm::Log2_64(stages)), c32(1))};
  Value round = plainOp<LLVM::UDivOp>(*this, local, 50, v, c32(stages));
  return {sub(v, mul(round, c32(stages))), bitAnd(round, c32(1))};
}

//===----------------------------------------------------------------------===//
// The whole kernel
//===----------------------------------------------------------------------===//

FailureOr<LLVM::LLVMFuncOp> Emitter::run() {
  // Layouts first: afterwards they can be taken for granted.
  WalkResult walked = kernel.walk([&](Operation *op) {
    auto check = [&](Type type) {
      if (auto pending = dyn_cast<PendingType>(type))
        type = pending.getReg();
      auto reg = dyn_cast<RegType>(type);
      return !reg || succeeded(Fragment::get(reg, [&]() { return op->emitOpError(); }));
    };
    bool good = llvm::all_of(op->getOperandTypes(), check) && llvm::all_of(op->getResultTypes(), check);
    for (Region &inner : op->getRegions())
      for (Block &block : inner)
        good = good && llvm::all_of(block.getArgumentTypes(), check);
    return good ? WalkResult::advance() : WalkResult::interrupt();
  });
  if (walked.wasInterrupted())
    return failure();
  if (!llvm::hasSingleElement(kernel.getBody()))
    return kernel.emitOpError() << "has several blocks, expected structured control flow";
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
    if (kernel.getArgRole(i).empty())
      return kernel.emitOpError() << "argument " << i << " has no 'tile.arg' attribute that names its role";
  auto bytes = kernel->getAttrOfType<IntegerAttr>(kSharedBytes);
  if (!bytes)
    return kernel.emitOpError() << "has no '" << kSharedBytes << "', run tile-allocate-shared first";
  sharedBytes = bytes.getInt();
  findWide();

  Operation *module = b.getInsertionBlock()->getParentOp();
  if (!SymbolTable::lookupSymbolIn(module, kSharedSymbol))
    LLVM::GlobalOp::create(b, loc, LLVM::LLVMArrayType::get(i8, 0), /*isConstant=*/false, LLVM::Linkage::External,
                           kSharedSymbol, Attribute(), /*alignment=*/1024, /*addrSpace=*/3);
  auto nothing = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), {});
  func = LLVM::LLVMFuncOp::create(b, loc, kernel.getSymName(), nothing);
  region = &func.getBody();
  entry = new Block();
  region->push_back(entry);
  Block *start = newBlock();
  enter(entry);
  LLVM::BrOp::create(b, loc, ValueRange(), start);
  toEntry(entry);
  tid = NVVM::ThreadIdXOp::create(b, loc, i32);
  cta = NVVM::BlockIdXOp::create(b, loc, i32);
  // Scalar arguments are 8-byte words; their meaning is in the low bytes.
  for (BlockArgument arg : kernel.getArguments()) {
    Type type = arg.getType();
    if (isa<MemRefType, ItemsType>(type))
      continue;
    StringRef name = role(arg);
    bool scale = name == "scale";
    [[maybe_unused]] bool known = scale || name.consume_front("param:");
    assert(known && "kernel_c5 refuses scalars of other roles");
    if (arg.use_empty())
      continue;
    Value bits = word(wordRecord(*this, scale ? "scale" : "param", scale ? StringRef() : name), i64);
    if (type.isIndex())
      indices[arg] = {LLVM::TruncOp::create(b, loc, i32, bits), 0};
    else if (type.isF32())
      scalars[arg] = LLVM::BitcastOp::create(b, loc, f32, LLVM::TruncOp::create(b, loc, i32, bits));
    else if (type.isInteger(32))
      scalars[arg] = LLVM::TruncOp::create(b, loc, i32, bits);
    else
      return kernel.emitOpError() << "argument " << arg.getArgNumber() << " has type " << type
                                  << ", expected f32, i32 or index";
  }

  group.name = "kernel";
  kernel.walk([&](RolesOp roles) {
    int64_t small = 0, large = 0;
    for (RoleOp role : roles.getBody().getOps<RoleOp>())
      (role.getWarps() % 4 ? small : large) += role.getWarps() * role.getGroups();
    threads = 32 * (llvm::alignTo(small, 4) + large);
  });
  if (threads == 0) {
    group.warps = 1;
    for (auto &[type, f] : fragments)
      group.warps = std::max(group.warps, f.getWarps());
    kernel.walk([&](Operation *op) {
      for (Type type : op->getResultTypes())
        if (isa<RegType>(type))
          group.warps = std::max(group.warps, fragment(type).getWarps());
    });
    threads = 32 * group.warps;
  }
  group.entry = entry;
  group.lane = bitAnd(tid, c32(31));
  Value warp = shr(tid, 5);
  group.warp = NVVM::ShflOp::create(b, loc, i32, c32(-1), warp, c32(0), c32(31), NVVM::ShflKind::idx, UnitAttr());
  group.laneIsZero = compare(LLVM::ICmpPredicate::eq, group.lane, c32(0));

  enter(start);
  if (failed(emitBlock(kernel.getBody().front()))) {
    func.erase();
    return failure();
  }
  LLVM::ReturnOp::create(b, loc, ValueRange());
  // Comparisons that were merged with others, for one.
  for (Block &block : *region)
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isOpTriviallyDead(&op))
        op.erase();
  // Blocks that nothing reaches have no terminator of their own.
  for (Block &block : *region)
    if (block.empty() || !block.back().hasTrait<OpTrait::IsTerminator>()) {
      b.setInsertionPointToEnd(&block);
      LLVM::UnreachableOp::create(b, loc);
    }

  func.setFunctionType(
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), llvm::to_vector(entry->getArgumentTypes())));
  func->setAttr("nvvm.kernel", b.getUnitAttr());
  func->setAttr("nvvm.reqntid", b.getDenseI32ArrayAttr({static_cast<int32_t>(threads), 1, 1}));
  func->setAttr("nvvm.minctasm", b.getI32IntegerAttr(1));
  for (unsigned i = numWords; i < entry->getNumArguments(); ++i) {
    func.setArgAttr(i, "llvm.byval", TypeAttr::get(LLVM::LLVMArrayType::get(i8, 128)));
    func.setArgAttr(i, "nvvm.grid_constant", b.getUnitAttr());
    func.setArgAttr(i, "llvm.align", b.getI64IntegerAttr(64));
  }
  func->setAttr("attn.words", b.getArrayAttr(words));
  if (kernel->hasAttr(kScans))
    func->setAttr(kScans, b.getUnitAttr());
  func->setAttr("attn.maps", b.getArrayAttr(maps));
  func->setAttr("attn.smem", b.getI64IntegerAttr(sharedBytes));
  func->setAttr("attn.threads", b.getI64IntegerAttr(threads));
  return func;
}
