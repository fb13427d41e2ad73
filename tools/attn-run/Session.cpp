//===- Session.cpp - plans and runs on a device -*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Session.h"
#include <chrono>
#include <cstring>
#include <thread>

using namespace attnrun;

static llvm::Error toError(const attnrt::Status &status) {
  if (status.ok())
    return llvm::Error::success();
  return llvm::createStringError(status.text());
}

#define TRY(expression)                                                                                                \
  do {                                                                                                                 \
    if (llvm::Error error = toError(expression))                                                                       \
      return error;                                                                                                    \
  } while (false)

static attnrt::Element elementOf(attn::ref::Storage storage) {
  switch (storage) {
  case attn::ref::Storage::F32:
    return attnrt::Element::F32;
  case attn::ref::Storage::BF16:
    return attnrt::Element::BF16;
  case attn::ref::Storage::F16:
    return attnrt::Element::F16;
  case attn::ref::Storage::E4M3:
    return attnrt::Element::E4M3;
  case attn::ref::Storage::E5M2:
    return attnrt::Element::E5M2;
  }
  return attnrt::Element::F32;
}

static attnrt::Element bufferElement(llvm::StringRef name) {
  if (name == "bf16")
    return attnrt::Element::BF16;
  if (name == "f16")
    return attnrt::Element::F16;
  if (name == "i8")
    return attnrt::Element::I8;
  if (name == "i32")
    return attnrt::Element::I32;
  if (name == "i64")
    return attnrt::Element::I64;
  return attnrt::Element::F32;
}

std::string attnrun::defaultTarget(const attnrt::Device &device) {
  if (device.kind() == attnrt::DeviceKind::CPU)
    return "host";
  int capability = device.computeCapability();
  return capability >= 100  ? "sm_100a"
         : capability >= 90 ? "sm_90a"
         : capability >= 89 ? "sm_89"
         : capability >= 86 ? "sm_86"
                            : "sm_80";
}

llvm::Expected<std::unique_ptr<Session>> Session::create(const std::string &bundle,
                                                         std::shared_ptr<attnrt::Device> device, Problem &problem) {
  std::unique_ptr<Session> session(new Session(std::move(device), problem));
  if (llvm::Error error = session->prepare(bundle))
    return std::move(error);
  return std::move(session);
}

Session::~Session() {
  plan.reset();
  for (void *pointer : allocations)
    (void)device->free(pointer);
  if (stream)
    (void)device->destroyStream(stream);
}

llvm::Expected<void *> Session::upload(const void *data, size_t bytes) {
  void *pointer = nullptr;
  // At least one byte, so that an empty buffer has an address.
  if (llvm::Error error = toError(device->alloc(std::max<size_t>(bytes, 64), pointer)))
    return std::move(error);
  allocations.push_back(pointer);
  if (bytes)
    if (llvm::Error error = toError(device->copyToDevice(pointer, data, bytes, stream)))
      return std::move(error);
  return pointer;
}

llvm::Error Session::uploadTensor(const attn::batch::Tensor &tensor, attnrt::TensorArg &arg) {
  const void *base = tensor.bytes->data();
  void *target = nullptr;
  for (auto [host, copy] : uploaded)
    if (host == base)
      target = copy;
  if (!target) {
    auto copied = upload(base, tensor.bytes->size());
    if (!copied)
      return copied.takeError();
    target = *copied;
    uploaded.push_back({base, target});
  }
  arg.data = static_cast<char *>(target) + tensor.offset * attn::ref::storageBytes(tensor.type);
  arg.element = elementOf(tensor.type);
  arg.rank = tensor.shape.size();
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    arg.sizes[i] = tensor.shape[i];
    arg.strides[i] = tensor.strides[i];
  }
  return llvm::Error::success();
}

llvm::Error Session::download(const attn::batch::Tensor &tensor, const attnrt::TensorArg &arg) {
  size_t offset = tensor.offset * attn::ref::storageBytes(tensor.type);
  TRY(device->copyToHost(tensor.bytes->data(), static_cast<char *>(arg.data) - offset, tensor.bytes->size(), stream));
  return llvm::Error::success();
}

llvm::Error Session::prepare(const std::string &bytes) {
  TRY(device->createStream(stream));
  TRY(attnrt::Bundle::fromMemory(bytes.data(), bytes.size(), bundle));
  TRY(attnrt::Executable::load(bundle, device, executable));
  attnrt::PlanOptions options;
  switch (problem.batch.split) {
  case attn::batch::SplitKind::Auto:
    options.policy = attnrt::SplitPolicy::Auto;
    break;
  case attn::batch::SplitKind::None:
    options.policy = attnrt::SplitPolicy::None;
    break;
  case attn::batch::SplitKind::Chunk:
    options.policy = attnrt::SplitPolicy::Chunk;
    options.chunk = problem.batch.chunk;
    break;
  }
  TRY(attnrt::Plan::create(executable, options, plan));

  const attn::batch::Built &built = problem.built;
  auto indexArray = [&](const std::vector<int64_t> &values) {
    return attnrt::IndexArray{values.data(), static_cast<int64_t>(values.size()), 64};
  };
  input.qoIndptr = indexArray(built.qoIndptr);
  for (const attn::ref::Level &level : built.levels) {
    attnrt::LevelInput in;
    in.kvIndptr = indexArray(level.kvIndptr);
    in.kvLast = indexArray(level.last);
    in.rowIndptr = indexArray(level.rowIndptr);
    if (built.geometry.format != attn::ref::Format::Ragged) {
      indexData.push_back(attn::batch::indexBytes(level.indices, problem.indexBits));
      auto pages = upload(indexData.back().data(), indexData.back().size());
      if (!pages)
        return pages.takeError();
      in.pages = *pages;
    }
    input.levels.push_back(in);
  }
  input.kvTotal = indexArray(built.kvTotal);

  for (auto [tensor, arg] : {std::pair<const attn::batch::Tensor *, attnrt::TensorArg *>{&built.q, &operands.q},
                             {&built.k, &operands.k},
                             {&built.v, &operands.v},
                             {&built.o, &operands.o},
                             {&built.lse, &operands.lse}}) {
    if (tensor == &built.lse && !problem.wantsLse)
      continue;
    if (llvm::Error error = uploadTensor(*tensor, *arg))
      return error;
  }
  for (auto [decl, value] : llvm::zip_equal(problem.decls, problem.params)) {
    attnrt::ParamArg arg;
    attnrt::ParamValue planned;
    arg.f32 = static_cast<float>(value.number);
    arg.index = planned.index = static_cast<int64_t>(value.number);
    planned.f32 = value.number;
    if (decl.kind == attn::batch::ParamDecl::Kind::Buffer) {
      auto data = upload(value.bytes.data(), value.bytes.size());
      if (!data)
        return data.takeError();
      arg.buffer.data = *data;
      arg.buffer.element = bufferElement(decl.element);
      arg.buffer.rank = value.shape.size();
      int64_t stride = 1;
      for (size_t i = value.shape.size(); i-- > 0;) {
        arg.buffer.sizes[i] = value.shape[i];
        arg.buffer.strides[i] = stride;
        stride *= value.shape[i];
      }
      planned.host = value.bytes.data();
      planned.hostSize = value.values.size();
    }
    paramArgs.push_back(arg);
    input.params.push_back(planned);
  }
  operands.params = paramArgs.data();
  operands.numParams = paramArgs.size();
  operands.hasScale = problem.hasScale;
  operands.scale = problem.scale;
  return llvm::Error::success();
}

/// The mean of runs one after another.
llvm::Error Session::time(int iterations, double &result) {
  void *from = nullptr, *to = nullptr;
  TRY(device->createEvent(from));
  TRY(device->createEvent(to));
  TRY(device->recordEvent(from, stream));
  for (int i = 0; i < iterations; ++i)
    TRY(plan->run(operands, stream));
  TRY(device->recordEvent(to, stream));
  TRY(device->waitEvent(to));
  float milliseconds = 0;
  TRY(device->elapsed(from, to, milliseconds));
  result = milliseconds / iterations;
  TRY(device->destroyEvent(from));
  TRY(device->destroyEvent(to));
  return llvm::Error::success();
}

llvm::Error Session::burst(double &milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  for (int i = 0; i < 4; ++i)
    TRY(plan->run(operands, stream));
  return time(4, milliseconds);
}

llvm::Error Session::run(int iterations, Timing &timing) {
  using Clock = std::chrono::steady_clock;
  auto start = Clock::now();
  TRY(plan->plan(input, stream));
  timing.planMicroseconds = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
  // The first run is checked, so that nothing is written twice; the timed ones follow.
  TRY(plan->run(operands, stream));
  TRY(device->synchronize(stream));
  if (llvm::Error error = download(problem.built.o, operands.o))
    return error;
  if (problem.wantsLse)
    if (llvm::Error error = download(problem.built.lse, operands.lse))
      return error;
  TRY(device->synchronize(stream));
  if (iterations > 0)
    if (llvm::Error error = time(iterations, timing.runMilliseconds))
      return error;
  timing.items = 0;
  for (size_t i = 0; i < bundle->manifest().kernels.size(); ++i) {
    const AttnWorkItem *items = nullptr;
    const int32_t *indptr = nullptr;
    int64_t count = 0;
    int32_t ctas = 0;
    TRY(plan->items(static_cast<int>(i), items, count, indptr, ctas));
    timing.items += count;
  }
  return llvm::Error::success();
}

llvm::Expected<std::string> Session::planSvg() {
  std::string text;
  if (llvm::Error error = toError(plan->svg(text)))
    return std::move(error);
  return text;
}
