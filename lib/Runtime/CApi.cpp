//===- CApi.cpp - C functions over the C++ classes ------------------------===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Handles own shared pointers, so a child outlives its parent's destruction.
// Plan handles lock: two threads may share one, though each is better off with
// its own.
//
//===----------------------------------------------------------------------===//

#include "attn-c/Runtime.h"

#include "attn/Runtime/Plan.h"

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <mutex>

using namespace attnrt;

struct AttnRtBundle {
  std::shared_ptr<const Bundle> bundle;
};
struct AttnRtDevice {
  std::shared_ptr<Device> device;
};
struct AttnRtExecutable {
  std::shared_ptr<Executable> executable;
};
struct AttnRtPlan {
  std::shared_ptr<Plan> plan;
  std::mutex mutex;
  PlanInput input; // reused, so that a plan call allocates nothing
  std::vector<ParamArg> params;
};

static thread_local std::string lastError;

static AttnRtCode finish(const Status &status) {
  if (!status.ok())
    lastError = status.text();
  return static_cast<AttnRtCode>(status.code());
}

static AttnRtCode nullArgument(const char *function, const char *argument) {
  return finish(invalid(std::string(function) + ": argument '" + argument + "' is null"));
}

#define NEED(argument)                                                                                                 \
  if (!argument)                                                                                                       \
  return nullArgument(__func__, #argument)

/// A struct whose size field is smaller than its first version was never initialised.
template <typename T> static Status checkStruct(const char *function, const char *argument, const T *value) {
  if (value->struct_size < sizeof(T))
    return invalid(std::string(function) + ": argument '" + argument + "': expected struct_size of at least " +
                   std::to_string(sizeof(T)) + ", got " + std::to_string(value->struct_size) + "; use ATTNRT_INIT");
  return Status();
}

#define NEED_STRUCT(argument)                                                                                          \
  do {                                                                                                                 \
    NEED(argument);                                                                                                    \
    Status structStatus = checkStruct(__func__, #argument, argument);                                                  \
    if (!structStatus.ok())                                                                                            \
      return finish(structStatus);                                                                                     \
  } while (false)

int32_t attnrtAbiVersion(void) { return ATTN_ABI_VERSION; }
const char *attnrtLastError(void) { return lastError.c_str(); }
void attnrtFreeString(char *text) { std::free(text); }

static AttnRtCode giveString(const Status &status, const std::string &text, char **out) {
  if (!status.ok())
    return finish(status);
  *out = static_cast<char *>(std::malloc(text.size() + 1));
  if (!*out)
    return finish(Status(Code::OutOfMemory, "cannot allocate " + std::to_string(text.size()) + " bytes of text"));
  std::memcpy(*out, text.c_str(), text.size() + 1);
  return ATTNRT_OK;
}

// Bundles.

AttnRtCode attnrtBundleOpen(const char *path, AttnRtBundle **bundle) {
  NEED(path);
  NEED(bundle);
  std::shared_ptr<const Bundle> result;
  Status status = Bundle::fromFile(path, result);
  if (status.ok())
    *bundle = new AttnRtBundle{std::move(result)};
  return finish(status);
}

AttnRtCode attnrtBundleFromMemory(const void *data, size_t size, AttnRtBundle **bundle) {
  NEED(data);
  NEED(bundle);
  std::shared_ptr<const Bundle> result;
  Status status = Bundle::fromMemory(data, size, result);
  if (status.ok())
    *bundle = new AttnRtBundle{std::move(result)};
  return finish(status);
}

void attnrtBundleDestroy(AttnRtBundle *bundle) { delete bundle; }
const char *attnrtBundleManifest(const AttnRtBundle *bundle) {
  return bundle ? bundle->bundle->manifestText().c_str() : "";
}

// Devices.

int32_t attnrtDeviceCount(AttnRtDeviceKind kind) { return Device::count(static_cast<DeviceKind>(kind)); }

AttnRtCode attnrtDeviceOpen(AttnRtDeviceKind kind, int32_t ordinal, AttnRtDevice **device) {
  NEED(device);
  if (kind != ATTNRT_CPU && kind != ATTNRT_CUDA)
    return finish(invalid("attnrtDeviceOpen: argument 'kind': expected ATTNRT_CPU or ATTNRT_CUDA, got " +
                          std::to_string(static_cast<int>(kind))));
  std::shared_ptr<Device> result;
  Status status = Device::open(static_cast<DeviceKind>(kind), ordinal, result);
  if (status.ok())
    *device = new AttnRtDevice{std::move(result)};
  return finish(status);
}

void attnrtDeviceDestroy(AttnRtDevice *device) { delete device; }
const char *attnrtDeviceName(const AttnRtDevice *device) { return device ? device->device->name().c_str() : ""; }
int32_t attnrtDeviceUnits(const AttnRtDevice *device) { return device ? device->device->computeUnits() : 0; }
int32_t attnrtDeviceCapability(const AttnRtDevice *device) { return device ? device->device->computeCapability() : 0; }

AttnRtCode attnrtAlloc(AttnRtDevice *device, size_t bytes, void **pointer) {
  NEED(device);
  NEED(pointer);
  return finish(device->device->alloc(bytes, *pointer));
}
AttnRtCode attnrtFree(AttnRtDevice *device, void *pointer) {
  NEED(device);
  return finish(device->device->free(pointer));
}
AttnRtCode attnrtAllocHost(AttnRtDevice *device, size_t bytes, void **pointer) {
  NEED(device);
  NEED(pointer);
  return finish(device->device->allocHost(bytes, *pointer));
}
AttnRtCode attnrtFreeHost(AttnRtDevice *device, void *pointer) {
  NEED(device);
  return finish(device->device->freeHost(pointer));
}

/// Copies of no bytes may have null ends.
#define NEED_ENDS                                                                                                      \
  NEED(device);                                                                                                        \
  if (bytes == 0)                                                                                                      \
    return ATTNRT_OK;                                                                                                  \
  NEED(target)

AttnRtCode attnrtCopyToDevice(AttnRtDevice *device, void *target, const void *source, size_t bytes, void *stream) {
  NEED_ENDS;
  NEED(source);
  return finish(device->device->copyToDevice(target, source, bytes, stream));
}
AttnRtCode attnrtCopyToHost(AttnRtDevice *device, void *target, const void *source, size_t bytes, void *stream) {
  NEED_ENDS;
  NEED(source);
  return finish(device->device->copyToHost(target, source, bytes, stream));
}
AttnRtCode attnrtCopyOnDevice(AttnRtDevice *device, void *target, const void *source, size_t bytes, void *stream) {
  NEED_ENDS;
  NEED(source);
  return finish(device->device->copyOnDevice(target, source, bytes, stream));
}
AttnRtCode attnrtFill(AttnRtDevice *device, void *target, uint8_t byte, size_t bytes, void *stream) {
  NEED_ENDS;
  return finish(device->device->fill(target, byte, bytes, stream));
}

AttnRtCode attnrtStreamCreate(AttnRtDevice *device, void **stream) {
  NEED(device);
  NEED(stream);
  return finish(device->device->createStream(*stream));
}
AttnRtCode attnrtStreamDestroy(AttnRtDevice *device, void *stream) {
  NEED(device);
  return finish(device->device->destroyStream(stream));
}
AttnRtCode attnrtStreamSynchronize(AttnRtDevice *device, void *stream) {
  NEED(device);
  return finish(device->device->synchronize(stream));
}
AttnRtCode attnrtEventCreate(AttnRtDevice *device, void **event) {
  NEED(device);
  NEED(event);
  return finish(device->device->createEvent(*event));
}
AttnRtCode attnrtEventDestroy(AttnRtDevice *device, void *event) {
  NEED(device);
  NEED(event);
  return finish(device->device->destroyEvent(event));
}
AttnRtCode attnrtEventRecord(AttnRtDevice *device, void *event, void *stream) {
  NEED(device);
  NEED(event);
  return finish(device->device->recordEvent(event, stream));
}
AttnRtCode attnrtEventWait(AttnRtDevice *device, void *event) {
  NEED(device);
  NEED(event);
  return finish(device->device->waitEvent(event));
}
AttnRtCode attnrtEventElapsed(AttnRtDevice *device, void *from, void *to, float *milliseconds) {
  NEED(device);
  NEED(from);
  NEED(to);
  NEED(milliseconds);
  return finish(device->device->elapsed(from, to, *milliseconds));
}
AttnRtCode attnrtCaptureBegin(AttnRtDevice *device, void *stream) {
  NEED(device);
  return finish(device->device->beginCapture(stream));
}
AttnRtCode attnrtCaptureEnd(AttnRtDevice *device, void *stream, void **graph) {
  NEED(device);
  NEED(graph);
  return finish(device->device->endCapture(stream, *graph));
}
AttnRtCode attnrtGraphLaunch(AttnRtDevice *device, void *graph, void *stream) {
  NEED(device);
  NEED(graph);
  return finish(device->device->launchGraph(graph, stream));
}
AttnRtCode attnrtGraphDestroy(AttnRtDevice *device, void *graph) {
  NEED(device);
  return finish(graph ? device->device->destroyGraph(graph) : Status());
}

// Executables.

AttnRtCode attnrtExecutableLoad(AttnRtBundle *bundle, AttnRtDevice *device, AttnRtExecutable **executable) {
  NEED(bundle);
  NEED(device);
  NEED(executable);
  std::shared_ptr<Executable> result;
  Status status = Executable::load(bundle->bundle, device->device, result);
  if (status.ok())
    *executable = new AttnRtExecutable{std::move(result)};
  return finish(status);
}

void attnrtExecutableDestroy(AttnRtExecutable *executable) { delete executable; }

// Plans.

static Maxima fromC(const AttnRtMaxima &in) {
  Maxima out;
  out.requests = in.requests;
  out.tokens = in.tokens;
  out.kvLen = in.kv_len;
  out.levels = in.levels;
  return out;
}

static IndexArray fromC(const AttnRtIndices &in) {
  IndexArray out;
  out.data = in.data;
  out.size = in.size;
  out.bits = in.size == 0 && in.bits == 0 ? 32 : in.bits;
  return out;
}

AttnRtCode attnrtPlanCreate(AttnRtExecutable *executable, const AttnRtPlanOptions *options, AttnRtPlan **plan) {
  NEED(executable);
  NEED(plan);
  NEED_STRUCT(options);
  PlanOptions converted;
  converted.maxima = fromC(options->maxima);
  converted.policy = static_cast<SplitPolicy>(options->policy);
  converted.chunk = options->chunk;
  converted.ctas = options->ctas;
  converted.units = options->units;
  converted.causal = static_cast<Hint>(options->causal);
  converted.fixedGrid = options->fixed_grid != 0;
  std::shared_ptr<Plan> result;
  Status status = Plan::create(executable->executable, converted, result);
  if (status.ok()) {
    *plan = new AttnRtPlan;
    (*plan)->plan = std::move(result);
  }
  return finish(status);
}

void attnrtPlanDestroy(AttnRtPlan *plan) { delete plan; }

AttnRtCode attnrtPlanSize(AttnRtPlan *plan, const AttnRtMaxima *maxima, int64_t *bytes) {
  NEED(plan);
  NEED(bytes);
  NEED_STRUCT(maxima);
  std::lock_guard<std::mutex> lock(plan->mutex);
  return finish(plan->plan->planSize(fromC(*maxima), *bytes));
}

AttnRtCode attnrtWorkspaceSize(AttnRtPlan *plan, const AttnRtMaxima *maxima, int64_t *bytes) {
  NEED(plan);
  NEED(bytes);
  NEED_STRUCT(maxima);
  std::lock_guard<std::mutex> lock(plan->mutex);
  return finish(plan->plan->workspaceSize(fromC(*maxima), *bytes));
}

/// Fills the plan's input from the caller's batch.
static Status takeBatch(AttnRtPlan &plan, const AttnRtBatch &batch) {
  if (batch.num_levels < 0 || (batch.num_levels > 0 && !batch.levels))
    return invalid("batch: 'levels' is null or 'num_levels' is negative");
  if (batch.num_params < 0 || (batch.num_params > 0 && !batch.params))
    return invalid("batch: 'params' is null or 'num_params' is negative");
  PlanInput &in = plan.input;
  in.qoIndptr = fromC(batch.qo_indptr);
  in.kvTotal = fromC(batch.kv_total);
  in.levels.resize(batch.num_levels);
  for (int i = 0; i < batch.num_levels; ++i) {
    const AttnRtLevel &level = batch.levels[i];
    in.levels[i] = {fromC(level.kv_indptr), fromC(level.kv_last), fromC(level.row_indptr), level.pages};
  }
  in.params.resize(batch.num_params);
  for (int i = 0; i < batch.num_params; ++i)
    in.params[i] = {batch.params[i].f32, batch.params[i].index, batch.params[i].host, batch.params[i].host_size};
  return Status();
}

AttnRtCode attnrtWorkspaceSizeForBatch(AttnRtPlan *plan, const AttnRtBatch *batch, int64_t *bytes) {
  NEED(plan);
  NEED(bytes);
  NEED_STRUCT(batch);
  std::lock_guard<std::mutex> lock(plan->mutex);
  Status status = takeBatch(*plan, *batch);
  return finish(status.ok() ? plan->plan->workspaceSize(plan->input, *bytes) : status);
}

AttnRtCode attnrtPlanSetWorkspace(AttnRtPlan *plan, void *pointer, int64_t bytes) {
  NEED(plan);
  std::lock_guard<std::mutex> lock(plan->mutex);
  return finish(plan->plan->setWorkspace(pointer, bytes));
}

AttnRtCode attnrtPlan(AttnRtPlan *plan, const AttnRtBatch *batch, void *stream) {
  NEED(plan);
  NEED_STRUCT(batch);
  std::lock_guard<std::mutex> lock(plan->mutex);
  Status status = takeBatch(*plan, *batch);
  return finish(status.ok() ? plan->plan->plan(plan->input, stream) : status);
}

static TensorArg fromC(const AttnRtTensor &in) {
  TensorArg out;
  out.data = in.data;
  out.element = static_cast<Element>(in.element);
  out.rank = in.rank;
  std::memcpy(out.sizes, in.sizes, sizeof(out.sizes));
  std::memcpy(out.strides, in.strides, sizeof(out.strides));
  return out;
}

static bool validTensor(const AttnRtTensor &tensor) {
  return tensor.element >= ATTNRT_F32 && tensor.element <= ATTNRT_I64 && tensor.rank >= 0 && tensor.rank <= 8;
}

AttnRtCode attnrtRun(AttnRtPlan *plan, const AttnRtOperands *operands, void *stream) {
  NEED(plan);
  NEED_STRUCT(operands);
  std::lock_guard<std::mutex> lock(plan->mutex);
  if (operands->num_params < 0 || (operands->num_params > 0 && !operands->params))
    return finish(invalid("run: 'params' is null or 'num_params' is negative"));
  const AttnRtTensor *tensors[] = {&operands->q, &operands->k, &operands->v, &operands->o, &operands->lse};
  for (const AttnRtTensor *tensor : tensors)
    if (!validTensor(*tensor))
      return finish(invalid("run: a tensor has an unknown element type or a rank outside 0..8"));
  plan->params.resize(operands->num_params);
  for (int i = 0; i < operands->num_params; ++i) {
    const AttnRtParam &in = operands->params[i];
    if (!validTensor(in.buffer))
      return finish(
          invalid("run: parameter " + std::to_string(i) + " has an unknown element type or a rank outside 0..8"));
    plan->params[i].f32 = in.f32;
    plan->params[i].index = in.index;
    plan->params[i].buffer = fromC(in.buffer);
  }
  Operands converted;
  std::memset(static_cast<void *>(&converted), 0, sizeof(converted)); // padding too: run compares bytes
  converted.q = fromC(operands->q);
  converted.k = fromC(operands->k);
  converted.v = fromC(operands->v);
  converted.o = fromC(operands->o);
  converted.lse = fromC(operands->lse);
  converted.params = plan->params.data();
  converted.numParams = operands->num_params;
  converted.hasScale = operands->has_scale != 0;
  converted.scale = operands->scale;
  return finish(plan->plan->run(converted, stream));
}

AttnRtCode attnrtValidatePages(AttnRtPlan *plan, const AttnRtBatch *batch, const AttnRtIndices *pages,
                               int64_t page_count) {
  NEED(plan);
  NEED(pages);
  NEED_STRUCT(batch);
  std::lock_guard<std::mutex> lock(plan->mutex);
  Status status = takeBatch(*plan, *batch);
  if (!status.ok())
    return finish(status);
  std::vector<IndexArray> arrays;
  for (int i = 0; i < batch->num_levels; ++i)
    arrays.push_back(fromC(pages[i]));
  return finish(plan->plan->validatePages(plan->input, arrays, page_count));
}

AttnRtCode attnrtPlanArray(AttnRtPlan *plan, int32_t index, const char *name, void **pointer, int64_t *count) {
  NEED(plan);
  NEED(name);
  NEED(pointer);
  NEED(count);
  std::lock_guard<std::mutex> lock(plan->mutex);
  return finish(plan->plan->array(index, name, *pointer, *count));
}

AttnRtCode attnrtPlanDescribe(AttnRtPlan *plan, char **json) {
  NEED(plan);
  NEED(json);
  std::lock_guard<std::mutex> lock(plan->mutex);
  std::string text;
  return giveString(plan->plan->describe(text), text, json);
}

AttnRtCode attnrtPlanSvg(AttnRtPlan *plan, char **svg) {
  NEED(plan);
  NEED(svg);
  std::lock_guard<std::mutex> lock(plan->mutex);
  std::string text;
  return giveString(plan->plan->svg(text), text, svg);
}
