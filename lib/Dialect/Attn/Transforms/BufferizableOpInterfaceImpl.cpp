//===- BufferizableOpInterfaceImpl.cpp - attn ops bufferise ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// attn.attention reads its inits (rows of no request keep their value) and
// writes them. A KV cache is never copied to repair a layout: a buffer that the
// op cannot take is an error that says how to get another one.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/Transforms/BufferizableOpInterfaceImpl.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::bufferization;

/// Whether the last dimension is known to be contiguous.
static bool isContiguous(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset;
  return succeeded(type.getStridesAndOffset(strides, offset)) && !strides.empty() && strides.back() == 1;
}

namespace {
struct AttentionOpInterface : DstBufferizableOpInterfaceExternalModel<AttentionOpInterface, AttentionOp> {
  LogicalResult bufferize(Operation *op, RewriterBase &rewriter, const BufferizationOptions &options,
                          BufferizationState &state) const {
    auto attention = cast<AttentionOp>(op);
    if (attention.getNumResults() == 0)
      return success();
    SmallVector<Value> operands;
    for (OpOperand &operand : op->getOpOperands()) {
      if (!isa<TensorType>(operand.get().getType())) {
        operands.push_back(operand.get());
        continue;
      }
      FailureOr<Value> buffer = getBuffer(rewriter, operand.get(), options, state);
      if (failed(buffer))
        return failure();
      auto type = dyn_cast<MemRefType>(buffer->getType());
      bool parameter = operand.getOperandNumber() < attention.getParams().size();
      if (!type || !isContiguous(type) || (parameter && !type.getLayout().isIdentity()))
        return op->emitOpError() << "operand " << operand.getOperandNumber() << " becomes " << buffer->getType()
                                 << ", but needs "
                                 << (parameter ? "the layout of the parameter" : "a contiguous last dimension")
                                 << "; bufferise with function-boundary-type-conversion=identity-layout-map and "
                                    "unknown-type-conversion=identity-layout-map";
      operands.push_back(*buffer);
    }
    rewriter.setInsertionPoint(op);
    OperationState bufferised(op->getLoc(), AttentionOp::getOperationName(), operands, TypeRange(), op->getAttrs());
    bufferised.propertiesAttr = op->getPropertiesAsAttribute();
    auto replacement = cast<AttentionOp>(rewriter.create(bufferised));
    SmallVector<Value> results;
    for (OpOperand &init : replacement.getDpsInitsMutable())
      results.push_back(init.get());
    replaceOpWithBufferizedValues(rewriter, op, results);
    return success();
  }
};
} // namespace

void mlir::attn::registerBufferizableOpInterfaceExternalModels(DialectRegistry &registry) {
  registry.addExtension(
      +[](MLIRContext *context, AttnDialect *) { AttentionOp::attachInterface<AttentionOpInterface>(*context); });
}
