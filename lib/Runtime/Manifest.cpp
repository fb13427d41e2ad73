//===- Manifest.cpp - parsing and checking the manifest -------------------===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A small reader over nlohmann's JSON (parsed without exceptions): every
// object is consumed key by key, so that a key nobody asked for is an error,
// and every message carries the path of the value it speaks of.
//
//===----------------------------------------------------------------------===//

#include "attn/Runtime/Manifest.h"

#include <nlohmann/json.hpp>

#include <set>

using namespace attnrt;
using Json = nlohmann::json;

int attnrt::elementBytes(Element element) {
  switch (element) {
  case Element::F32:
  case Element::I32:
    return 4;
  case Element::BF16:
  case Element::F16:
    return 2;
  case Element::E4M3:
  case Element::E5M2:
  case Element::I8:
    return 1;
  case Element::I64:
    return 8;
  }
  return 0;
}

const char *attnrt::elementName(Element element) {
  switch (element) {
  case Element::F32:
    return "f32";
  case Element::BF16:
    return "bf16";
  case Element::F16:
    return "f16";
  case Element::E4M3:
    return "e4m3";
  case Element::E5M2:
    return "e5m2";
  case Element::I8:
    return "i8";
  case Element::I32:
    return "i32";
  case Element::I64:
    return "i64";
  }
  return "?";
}

namespace {

Status bad(const std::string &path, const std::string &what) {
  return Status(Code::InvalidBundle, "manifest: " + path + ": " + what);
}

/// A short rendering of a value for a message.
std::string show(const Json &value) {
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() > 40 ? text.substr(0, 37) + "..." : text;
}

/// Reads the keys of one JSON object and remembers which ones were asked for.
class Reader {
public:
  Reader(const Json &object, std::string path) : object(object), path(std::move(path)) {}

  Status checkObject() const {
    return object.is_object() ? Status() : bad(path, "expected an object, got " + show(object));
  }

  std::string at(const char *key) const { return path.empty() ? key : path + "." + key; }

  /// The value of `key`, or null when it is absent.
  const Json *find(const char *key) {
    seen.insert(key);
    auto it = object.find(key);
    return it == object.end() ? nullptr : &*it;
  }

  Status need(const char *key, const Json *&value) {
    value = find(key);
    return value ? Status() : bad(at(key), "missing key");
  }

  Status integer(const char *key, int64_t low, int64_t high, int64_t &result) {
    const Json *value;
    ATTNRT_TRY(need(key, value));
    return toInteger(*value, at(key), low, high, result);
  }

  Status integer(const char *key, int64_t low, int64_t high, int &result) {
    int64_t wide = 0;
    ATTNRT_TRY(integer(key, low, high, wide));
    result = static_cast<int>(wide);
    return Status();
  }

  Status boolean(const char *key, bool &result) {
    const Json *value;
    ATTNRT_TRY(need(key, value));
    if (!value->is_boolean())
      return bad(at(key), "expected true or false, got " + show(*value));
    result = value->get<bool>();
    return Status();
  }

  Status string(const char *key, std::string &result) {
    const Json *value;
    ATTNRT_TRY(need(key, value));
    if (!value->is_string())
      return bad(at(key), "expected a string, got " + show(*value));
    result = value->get<std::string>();
    return Status();
  }

  /// One of `names`; `result` becomes its index.
  Status choice(const char *key, std::initializer_list<const char *> names, int &result) {
    std::string text;
    ATTNRT_TRY(string(key, text));
    std::string all;
    int index = 0;
    for (const char *name : names) {
      if (text == name) {
        result = index;
        return Status();
      }
      all += (index++ ? ", " : "") + std::string("\"") + name + "\"";
    }
    return bad(at(key), "expected one of " + all + ", got \"" + text.substr(0, 40) + "\"");
  }

  Status array(const char *key, const Json *&value) {
    ATTNRT_TRY(need(key, value));
    return value->is_array() ? Status() : bad(at(key), "expected an array, got " + show(*value));
  }

  Status done() const {
    for (auto it = object.begin(); it != object.end(); ++it)
      if (!seen.count(it.key()))
        return bad(path.empty() ? it.key() : path + "." + it.key(), "unknown key");
    return Status();
  }

  static Status toInteger(const Json &value, const std::string &path, int64_t low, int64_t high, int64_t &result) {
    std::string range = std::to_string(low) + ".." + std::to_string(high);
    if (!value.is_number_integer())
      return bad(path, "expected an integer in " + range + ", got " + show(value));
    if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
      return bad(path, "expected an integer in " + range + ", got " + show(value));
    result = value.get<int64_t>();
    if (result < low || result > high)
      return bad(path, "expected an integer in " + range + ", got " + std::to_string(result));
    return Status();
  }

private:
  const Json &object;
  std::string path;
  std::set<std::string> seen;
};

std::string item(const std::string &path, size_t index) { return path + "[" + std::to_string(index) + "]"; }

Status parseElement(const std::string &text, const std::string &path, Element &element) {
  for (int i = 0; i <= static_cast<int>(Element::I64); ++i)
    if (text == elementName(static_cast<Element>(i))) {
      element = static_cast<Element>(i);
      return Status();
    }
  return bad(path, "unknown element type \"" + text.substr(0, 40) + "\"");
}

Status tensorElement(Reader &reader, const char *key, bool host, Element &element) {
  std::string text;
  ATTNRT_TRY(reader.string(key, text));
  ATTNRT_TRY(parseElement(text, reader.at(key), element));
  if (element >= Element::I8)
    return bad(reader.at(key), "expected a float type, got \"" + text + "\"");
  if (element == Element::F32 && !host)
    return bad(reader.at(key), "f32 is for target \"host\" only");
  return Status();
}

/// Parses operand names; needs the parameters to resolve "param:NAME".
struct OperandParser {
  const Manifest &manifest;

  /// Rank of the tensor that an operand names.
  int rank(OperandRef ref) const {
    switch (ref.kind) {
    case OperandKind::Q:
    case OperandKind::O:
      return 3;
    case OperandKind::K:
    case OperandKind::V:
      return manifest.format == Format::Ragged ? 3 : 4;
    case OperandKind::Lse:
    case OperandKind::PartO:
      return 2;
    case OperandKind::Param:
      return manifest.params[ref.param].rank;
    default:
      return 1;
    }
  }

  Status parse(Reader &reader, const char *key, OperandRef &ref) const {
    static const char *const names[] = {"q",        "k",     "v",          "o",       "lse",    "pages", "part_o",
                                        "part_lse", "items", "cta_indptr", "counter", "tokens", "pieces"};
    std::string text;
    ATTNRT_TRY(reader.string(key, text));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i)
      if (text == names[i]) {
        ref.kind = static_cast<OperandKind>(i);
        if (ref.kind == OperandKind::Lse && manifest.lse == Lse::None)
          return bad(reader.at(key), "\"lse\" is \"none\" in this manifest");
        if (ref.kind == OperandKind::Pages && manifest.format == Format::Ragged)
          return bad(reader.at(key), "a ragged bundle has no pages");
        return Status();
      }
    if (text.compare(0, 6, "param:") == 0)
      for (size_t i = 0; i < manifest.params.size(); ++i)
        if (manifest.params[i].name == text.substr(6) && manifest.params[i].kind == ParamDesc::Buffer) {
          ref.kind = OperandKind::Param;
          ref.param = static_cast<int>(i);
          return Status();
        }
    return bad(reader.at(key), "unknown operand \"" + text.substr(0, 40) + "\"");
  }
};

Status parseWord(const Json &json, const std::string &path, const Manifest &manifest, KernelDesc &kernel) {
  Reader reader(json, path);
  ATTNRT_TRY(reader.checkObject());
  OperandParser operands{manifest};
  WordDesc word;
  int kind = 0;
  ATTNRT_TRY(reader.choice("kind", {"pointer", "stride", "size", "param", "scale"}, kind));
  word.kind = static_cast<WordDesc::Kind>(kind);
  if (word.kind == WordDesc::Param) {
    std::string name;
    ATTNRT_TRY(reader.string("name", name));
    for (size_t i = 0; i < manifest.params.size(); ++i)
      if (manifest.params[i].name == name && manifest.params[i].kind != ParamDesc::Buffer)
        word.param = static_cast<int>(i);
    if (word.param < 0)
      return bad(reader.at("name"), "no f32 or index parameter \"" + name.substr(0, 40) + "\"");
  } else if (word.kind != WordDesc::Scale) {
    ATTNRT_TRY(operands.parse(reader, "operand", word.operand));
    if (word.kind != WordDesc::Pointer) {
      int rank = operands.rank(word.operand);
      if (rank == 0)
        return bad(reader.at("operand"), "a buffer of rank 0 has no dimensions");
      ATTNRT_TRY(reader.integer("dim", 0, rank - 1, word.dim));
    }
    kernel.counter |= word.operand.kind == OperandKind::Counter;
  }
  kernel.words.push_back(word);
  return reader.done();
}

/// An integer, or an object {key: dimension}.
Status integerOrDim(Reader &reader, const char *key, const char *inner, int64_t low, int rank, int64_t &constant,
                    int &dim) {
  const Json *value;
  ATTNRT_TRY(reader.need(key, value));
  if (!value->is_object())
    return Reader::toInteger(*value, reader.at(key), low, int64_t(1) << 40, constant);
  Reader object(*value, reader.at(key));
  ATTNRT_TRY(object.integer(inner, 0, rank - 1, dim));
  return object.done();
}

Status parseMap(const Json &json, const std::string &path, const Manifest &manifest, KernelDesc &kernel) {
  Reader reader(json, path);
  ATTNRT_TRY(reader.checkObject());
  OperandParser operands{manifest};
  MapDesc map;
  ATTNRT_TRY(operands.parse(reader, "operand", map.operand));
  if (map.operand.kind > OperandKind::O && map.operand.kind != OperandKind::PartO)
    return bad(reader.at("operand"), "a tensor map needs \"q\", \"k\", \"v\", \"o\" or \"part_o\"");
  int rank = operands.rank(map.operand);
  std::string element;
  ATTNRT_TRY(reader.string("element", element));
  ATTNRT_TRY(parseElement(element, reader.at("element"), map.element));
  const Json *dims, *box;
  ATTNRT_TRY(reader.array("dims", dims));
  ATTNRT_TRY(reader.array("box", box));
  if (dims->empty() || dims->size() > 5)
    return bad(reader.at("dims"), "expected 1 to 5 dimensions, got " + std::to_string(dims->size()));
  if (box->size() != dims->size())
    return bad(reader.at("box"), "expected as many entries as dims (" + std::to_string(dims->size()) + "), got " +
                                     std::to_string(box->size()));
  for (size_t i = 0; i < dims->size(); ++i) {
    Reader dim((*dims)[i], item(reader.at("dims"), i));
    ATTNRT_TRY(dim.checkObject());
    MapDim out;
    ATTNRT_TRY(integerOrDim(dim, "extent", "size", 1, rank, out.extent, out.sizeDim));
    if (i > 0)
      ATTNRT_TRY(integerOrDim(dim, "stride", "stride", 0, rank, out.strideBytes, out.strideDim));
    ATTNRT_TRY(dim.done());
    map.dims.push_back(out);
    int64_t extent = 0;
    ATTNRT_TRY(Reader::toInteger((*box)[i], item(reader.at("box"), i), 1, 256, extent));
    map.box.push_back(static_cast<uint32_t>(extent));
  }
  ATTNRT_TRY(reader.integer("swizzle", 0, 128, map.swizzle));
  if (map.swizzle != 0 && map.swizzle != 32 && map.swizzle != 64 && map.swizzle != 128)
    return bad(reader.at("swizzle"), "expected 0, 32, 64 or 128, got " + std::to_string(map.swizzle));
  ATTNRT_TRY(reader.integer("promotion", 0, 256, map.promotion));
  if (map.promotion != 0 && map.promotion != 64 && map.promotion != 128 && map.promotion != 256)
    return bad(reader.at("promotion"), "expected 0, 64, 128 or 256, got " + std::to_string(map.promotion));
  kernel.maps.push_back(std::move(map));
  return reader.done();
}

Status parseKernel(const Json &json, const std::string &path, const Manifest &manifest, bool merge,
                   KernelDesc &kernel) {
  Reader reader(json, path);
  ATTNRT_TRY(reader.checkObject());
  ATTNRT_TRY(reader.string("symbol", kernel.symbol));
  if (kernel.symbol.empty())
    return bad(reader.at("symbol"), "expected a name, got an empty string");
  if (manifest.blobs.empty())
    return bad("blobs", "expected at least one blob");
  ATTNRT_TRY(reader.integer("blob", 0, static_cast<int64_t>(manifest.blobs.size()) - 1, kernel.blob));
  ATTNRT_TRY(reader.integer("rows", 1, 4096, kernel.rows));
  ATTNRT_TRY(reader.integer("pack", 1, manifest.headsQo, kernel.pack));
  ATTNRT_TRY(reader.integer("keys", 1, 4096, kernel.keys));
  ATTNRT_TRY(reader.boolean("row_table", kernel.rowTable));
  ATTNRT_TRY(reader.integer("threads", 1, 1024, kernel.threads));
  ATTNRT_TRY(reader.integer("smem", 0, int64_t(1) << 30, kernel.smem));
  ATTNRT_TRY(reader.integer("ctas_per_sm", 1, 64, kernel.ctasPerSm));
  if (reader.find("scans"))
    ATTNRT_TRY(reader.boolean("scans", kernel.scans));
  int group = manifest.headsQo / manifest.headsKv;
  if (!merge && kernel.pack != 1 && kernel.pack != group)
    return bad(reader.at("pack"),
               "expected 1 or heads_qo / heads_kv (" + std::to_string(group) + "), got " + std::to_string(kernel.pack));
  if (!merge && kernel.rows < kernel.pack)
    return bad(reader.at("rows"),
               "expected at least pack (" + std::to_string(kernel.pack) + "), got " + std::to_string(kernel.rows));
  const Json *words, *maps;
  ATTNRT_TRY(reader.array("words", words));
  ATTNRT_TRY(reader.array("maps", maps));
  for (size_t i = 0; i < words->size(); ++i)
    ATTNRT_TRY(parseWord((*words)[i], item(reader.at("words"), i), manifest, kernel));
  for (size_t i = 0; i < maps->size(); ++i)
    ATTNRT_TRY(parseMap((*maps)[i], item(reader.at("maps"), i), manifest, kernel));
  if (manifest.onHost() && !kernel.maps.empty())
    return bad(reader.at("maps"), "a host kernel takes no tensor maps");
  return reader.done();
}

Status parseParam(const Json &json, const std::string &path, Manifest &manifest) {
  Reader reader(json, path);
  ATTNRT_TRY(reader.checkObject());
  ParamDesc param;
  int kind = 0;
  ATTNRT_TRY(reader.string("name", param.name));
  for (const ParamDesc &other : manifest.params)
    if (other.name == param.name)
      return bad(reader.at("name"), "a second parameter \"" + param.name.substr(0, 40) + "\"");
  ATTNRT_TRY(reader.choice("kind", {"f32", "index", "buffer"}, kind));
  param.kind = static_cast<ParamDesc::Kind>(kind);
  // Scalars may carry the two keys; they mean nothing there.
  bool buffer = param.kind == ParamDesc::Buffer;
  if (buffer || reader.find("element")) {
    std::string element;
    ATTNRT_TRY(reader.string("element", element));
    if (buffer) {
      ATTNRT_TRY(parseElement(element, reader.at("element"), param.element));
      if (param.element == Element::E4M3 || param.element == Element::E5M2)
        return bad(reader.at("element"), "a buffer parameter cannot be " + element);
    }
  }
  if (buffer || reader.find("rank"))
    ATTNRT_TRY(reader.integer("rank", 0, 8, param.rank));
  ATTNRT_TRY(reader.done());
  manifest.params.push_back(std::move(param));
  return Status();
}

/// One line of a range program.
Status parseInstruction(const Json &line, const std::string &path, const Manifest &manifest, int registers,
                        RangeProgram::Instruction &inst) {
  struct Form {
    const char *name;
    size_t least, most; // entries of the line
    int results;
    const char *text;
  };
  static const Form forms[] = {
      {"const", 3, 4, 1, "[op, dst, a, b]"},
      {"add", 4, 4, 1, "[op, dst, a, b]"},
      {"sub", 4, 4, 1, "[op, dst, a, b]"},
      {"mul", 4, 4, 1, "[op, dst, a, b]"},
      {"div", 4, 4, 1, "[op, dst, a, b]"},
      {"min", 4, 4, 1, "[op, dst, a, b]"},
      {"max", 4, 4, 1, "[op, dst, a, b]"},
      {"load", 4, 4, 1, "[op, dst, a, b]"},
      {"extent", 5, 5, 2, "[\"extent\", dst, param, from, to]"},
      {"scan", 11, 11, 4, "[\"scan\", dst, param, base, from, to, some_lo, some_hi, all_lo, all_hi, flags]"},
  };
  constexpr int count = sizeof(forms) / sizeof(forms[0]);
  if (!line.is_array() || line.empty() || !line[0].is_string())
    return bad(path, "expected [op, dst, a, b], got " + show(line));
  std::string op = line[0].get<std::string>();
  int index = 0;
  while (index < count && op != forms[index].name)
    ++index;
  if (index == count)
    return bad(path, "unknown op \"" + op.substr(0, 40) + "\"");
  const Form &form = forms[index];
  if (line.size() < form.least || line.size() > form.most)
    return bad(path, std::string("expected ") + form.text + ", got " + show(line));
  inst.op = static_cast<RangeProgram::Op>(index);

  auto integer = [&](int entry, int64_t low, int64_t high, int64_t &value) {
    return Reader::toInteger(line[entry], item(path, entry), low, high, value);
  };
  auto reg = [&](int entry, int &value) {
    int64_t wide = 0;
    ATTNRT_TRY(integer(entry, 0, registers - 1, wide));
    value = static_cast<int>(wide);
    return Status();
  };
  int64_t dst = 0;
  ATTNRT_TRY(integer(1, 0, registers - form.results, dst));
  inst.dst = static_cast<int>(dst);
  if (inst.op == RangeProgram::Const)
    return integer(2, INT64_MIN, INT64_MAX, inst.a);
  if (inst.op < RangeProgram::Load) {
    ATTNRT_TRY(integer(2, 0, registers - 1, inst.a));
    return integer(3, 0, registers - 1, inst.b);
  }

  // These read a table.
  ATTNRT_TRY(integer(2, 0, static_cast<int64_t>(manifest.params.size()) - 1, inst.a));
  const ParamDesc &table = manifest.params[inst.a];
  if (table.kind != ParamDesc::Buffer || table.rank != 1)
    return bad(item(path, 2), "parameter " + std::to_string(inst.a) + " is not a buffer of rank 1");
  if (inst.op == RangeProgram::Load)
    return integer(3, 0, registers - 1, inst.b);
  if (table.element < Element::I8)
    return bad(item(path, 2), "parameter " + std::to_string(inst.a) + " has elements of " + elementName(table.element) +
                                  "; expected i8, i32 or i64");
  int entry = 3, ignored = 0;
  if (inst.op == RangeProgram::Scan)
    ATTNRT_TRY(integer(entry++, 0, registers - 1, inst.b));
  ATTNRT_TRY(reg(entry++, inst.from));
  ATTNRT_TRY(reg(entry++, inst.to));
  if (inst.op == RangeProgram::Extent)
    return Status();
  ATTNRT_TRY(reg(entry++, inst.someLo));
  ATTNRT_TRY(reg(entry++, inst.someHi));
  ATTNRT_TRY(reg(entry++, ignored)); // all_lo
  ATTNRT_TRY(reg(entry++, ignored)); // all_hi
  int64_t flags = 0;
  ATTNRT_TRY(integer(entry, 0, 3, flags));
  inst.outside = flags & 1;
  return Status();
}

Status parseRange(const Json &json, Manifest &manifest) {
  Reader reader(json, "range");
  ATTNRT_TRY(reader.checkObject());
  RangeProgram program;
  int inputs = 5 + static_cast<int>(manifest.params.size());
  ATTNRT_TRY(reader.integer("registers", inputs, 4096, program.registers));
  const Json *code, *result;
  ATTNRT_TRY(reader.array("code", code));
  ATTNRT_TRY(reader.array("result", result));
  if (code->size() > 4096)
    return bad("range.code", "expected at most 4096 instructions, got " + std::to_string(code->size()));
  for (size_t i = 0; i < code->size(); ++i) {
    RangeProgram::Instruction inst;
    ATTNRT_TRY(parseInstruction((*code)[i], item("range.code", i), manifest, program.registers, inst));
    program.code.push_back(inst);
  }
  if (result->size() != 4)
    return bad("range.result", "expected 4 registers, got " + std::to_string(result->size()));
  for (int i = 0; i < 4; ++i) {
    int64_t reg = 0;
    ATTNRT_TRY(Reader::toInteger((*result)[i], item("range.result", i), 0, program.registers - 1, reg));
    program.result[i] = static_cast<int>(reg);
  }
  program.slice(manifest.params.size());
  manifest.range = std::move(program);
  return reader.done();
}

Status parseBlobs(const Json &json, uint64_t blobBytes, Manifest &manifest) {
  for (size_t i = 0; i < json.size(); ++i) {
    Reader reader(json[i], item("blobs", i));
    ATTNRT_TRY(reader.checkObject());
    BlobDesc blob;
    int kind = 0;
    int64_t offset = 0, bytes = 0;
    ATTNRT_TRY(reader.choice("kind", {"cubin", "ptx", "so"}, kind));
    ATTNRT_TRY(reader.integer("offset", 0, INT64_MAX, offset));
    ATTNRT_TRY(reader.integer("bytes", 1, INT64_MAX, bytes));
    blob.kind = static_cast<BlobDesc::Kind>(kind);
    blob.offset = offset;
    blob.bytes = bytes;
    if (blob.offset > blobBytes || blob.bytes > blobBytes - blob.offset)
      return bad(item("blobs", i), "reaches past the end of the blobs (" + std::to_string(blobBytes) + " bytes)");
    if ((blob.kind == BlobDesc::So) != manifest.onHost())
      return bad(reader.at("kind"), "target \"" + manifest.target + "\" does not run this kind of blob");
    ATTNRT_TRY(reader.done());
    manifest.blobs.push_back(blob);
  }
  return Status();
}

Status parseTop(const Json &json, uint64_t blobBytes, Manifest &m) {
  Reader reader(json, "");
  if (!json.is_object())
    return Status(Code::InvalidBundle, "manifest: expected a JSON object, got " + show(json));
  int64_t abi = 0;
  ATTNRT_TRY(reader.integer("abi", 1, INT32_MAX, abi));
  if (abi != ATTN_ABI_VERSION)
    return bad("abi", "this runtime reads version " + std::to_string(ATTN_ABI_VERSION) + ", got " +
                          std::to_string(abi) + "; compile the variant again");
  ATTNRT_TRY(reader.string("name", m.name));
  ATTNRT_TRY(reader.string("target", m.target));
  if (!m.onHost() && m.target.compare(0, 3, "sm_") != 0)
    return bad("target", "expected \"host\" or \"sm_NN\", got \"" + m.target.substr(0, 40) + "\"");
  ATTNRT_TRY(reader.integer("heads_qo", 1, 4096, m.headsQo));
  ATTNRT_TRY(reader.integer("heads_kv", 1, 4096, m.headsKv));
  if (m.headsQo % m.headsKv != 0)
    return bad("heads_qo",
               "expected a multiple of heads_kv (" + std::to_string(m.headsKv) + "), got " + std::to_string(m.headsQo));
  ATTNRT_TRY(reader.integer("head_dim_qk", 1, 4096, m.headDimQk));
  ATTNRT_TRY(reader.integer("head_dim_vo", 1, 4096, m.headDimVo));
  ATTNRT_TRY(tensorElement(reader, "type_q", m.onHost(), m.typeQ));
  ATTNRT_TRY(tensorElement(reader, "type_kv", m.onHost(), m.typeKv));
  ATTNRT_TRY(tensorElement(reader, "type_o", m.onHost(), m.typeO));
  int format = 0, normalizer = 0, lse = 0;
  ATTNRT_TRY(reader.choice("format", {"ragged", "paged", "bsr"}, format));
  m.format = static_cast<Format>(format);
  bool ragged = m.format == Format::Ragged, bsr = m.format == Format::Bsr;
  ATTNRT_TRY(reader.integer("page_size", ragged ? 0 : 1, ragged ? 0 : 1 << 20, m.pageSize));
  ATTNRT_TRY(reader.integer("row_block", bsr ? 1 : 0, bsr ? 1 << 20 : 0, m.rowBlock));
  ATTNRT_TRY(reader.integer("index_bits", 32, 64, m.indexBits));
  if (m.indexBits != 32 && m.indexBits != 64)
    return bad("index_bits", "expected 32 or 64, got " + std::to_string(m.indexBits));
  ATTNRT_TRY(reader.integer("levels", 1, 64, m.levels));
  if (bsr && m.levels != 1)
    return bad("levels", "a bsr bundle has one level, got " + std::to_string(m.levels));
  ATTNRT_TRY(reader.choice("normalizer", {"softmax", "none"}, normalizer));
  m.softmax = normalizer == 0;
  ATTNRT_TRY(reader.choice("lse", {"natural", "base2", "none"}, lse));
  m.lse = static_cast<Lse>(lse);
  ATTNRT_TRY(reader.boolean("causal_rows", m.causalRows));

  const Json *params, *kernels, *blobs, *range;
  ATTNRT_TRY(reader.array("params", params));
  for (size_t i = 0; i < params->size(); ++i)
    ATTNRT_TRY(parseParam((*params)[i], item("params", i), m));
  ATTNRT_TRY(reader.array("blobs", blobs));
  ATTNRT_TRY(parseBlobs(*blobs, blobBytes, m));
  ATTNRT_TRY(reader.array("kernels", kernels));
  if (kernels->empty() || kernels->size() > 16)
    return bad("kernels", "expected 1 to 16 kernels, got " + std::to_string(kernels->size()));
  for (size_t i = 0; i < kernels->size(); ++i) {
    KernelDesc kernel;
    ATTNRT_TRY(parseKernel((*kernels)[i], item("kernels", i), m, false, kernel));
    if (i > 0 && kernel.rows < m.kernels.back().rows)
      return bad(item("kernels", i) + ".rows", "expected tile classes in ascending order");
    m.kernels.push_back(std::move(kernel));
  }
  if (const Json *merge = reader.find("merge")) {
    KernelDesc kernel;
    ATTNRT_TRY(parseKernel(*merge, "merge", m, true, kernel));
    m.merge = std::move(kernel);
  }
  ATTNRT_TRY(reader.need("range", range));
  if (!range->is_null())
    ATTNRT_TRY(parseRange(*range, m));
  return reader.done();
}

} // namespace

Status attnrt::parseManifest(std::string_view text, uint64_t blobBytes, Manifest &manifest) {
  Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded())
    return Status(Code::InvalidBundle, "manifest: not a JSON text");
  manifest = Manifest();
  return parseTop(json, blobBytes, manifest);
}
