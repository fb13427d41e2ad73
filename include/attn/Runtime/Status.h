//===- Status.h - errors are values -----------------------------*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every call that can fail returns a Status: a code for programs and a text
// for people that names the argument, the rule and the remedy.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_RUNTIME_STATUS_H
#define ATTN_RUNTIME_STATUS_H

#include <string>
#include <utility>

#define ATTNRT_API __attribute__((visibility("default")))

namespace attnrt {

/// The same numbers as AttnRtCode of the C API.
enum class Code : int {
  Ok = 0,
  InvalidArgument = 1,   ///< an argument breaks a rule
  InvalidBundle = 2,     ///< the bundle's bytes or manifest are wrong
  WorkspaceTooSmall = 3, ///< the text states the bytes needed
  ExceedsMaxima = 4,     ///< the batch is larger than what was declared
  DeviceError = 5,       ///< the device or its driver said no
  Unsupported = 6,       ///< this device or build cannot do it
  IoError = 7,
  OutOfMemory = 8,
};

class [[nodiscard]] Status {
public:
  Status() = default;
  Status(Code code, std::string text) : errorCode(code), message(std::move(text)) {}

  bool ok() const { return errorCode == Code::Ok; }
  Code code() const { return errorCode; }
  const std::string &text() const { return message; }

private:
  Code errorCode = Code::Ok;
  std::string message;
};

inline Status invalid(std::string text) { return Status(Code::InvalidArgument, std::move(text)); }

/// Returns from the calling function when `expr` is a Status that is not ok.
#define ATTNRT_TRY(expr)                                                                                               \
  do {                                                                                                                 \
    ::attnrt::Status attnrtStatus = (expr);                                                                            \
    if (!attnrtStatus.ok())                                                                                            \
      return attnrtStatus;                                                                                             \
  } while (false)

} // namespace attnrt

#endif // ATTN_RUNTIME_STATUS_H
