//===- warps.cpp - the threads of a CTA as fibers of one CPU thread ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What emulate.py turns GPU intrinsics into. Every thread of a CTA is a fiber;
// collective instructions make the 32 fibers of a warp (or the CTA) meet. The
// order of the warps is random by seed and cp.async completes as late as it
// may, on poisoned memory, so that a missing barrier or a wait for too few
// groups gives wrong results here and not only sometimes on a GPU. Copies that
// arrive on an mbarrier do so when nobody can go on without them.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <random>
#include <ucontext.h>
#include <vector>

extern "C" {
alignas(1024) unsigned char attn_shared[256 * 1024];
}

namespace {
struct Copy {
  unsigned char *to;
  const unsigned char *from;
  int bytes, size;
};
struct Meeting { // of a warp or of the CTA
  int size = 0, arrived = 0;
  uint64_t round = 0;
  int kind = 0;
  uint64_t in[32][16], out[32][4];
};
struct Barrier { // an mbarrier: the rounds of its meeting are its phases
  Meeting meeting;
  void arrive() {
    if (++meeting.arrived < meeting.size)
      return;
    meeting.arrived = 0;
    ++meeting.round;
  }
};
struct Fiber {
  ucontext_t context;
  std::vector<unsigned char> stack;
  int tid;
  bool done = false;
  const Meeting *waiting = nullptr; // until its round changes
  uint64_t round = 0;
  std::vector<Copy> issued;            // not committed
  std::deque<std::vector<Copy>> groups; // committed, not complete
  std::deque<std::pair<std::vector<Copy>, Barrier *>> arriving;
};
ucontext_t scheduler;
std::vector<Fiber> fibers;
std::vector<Meeting> warps;
Meeting cta;
std::map<const void *, Barrier> barriers;
Fiber *current;
int ctaid;
uint64_t *arguments;
void (*entry)(uint64_t *);
const char *failure;

void fail(const char *why) {
  if (!failure)
    failure = why;
}

void wait(Meeting &meeting) {
  current->waiting = &meeting;
  current->round = meeting.round;
  swapcontext(&current->context, &scheduler);
}

template <typename F> void meet(Meeting &meeting, int kind, F last) {
  if (meeting.arrived == 0)
    meeting.kind = kind;
  else if (meeting.kind != kind)
    fail("threads meet in different instructions");
  if (++meeting.arrived < meeting.size)
    return wait(meeting);
  last();
  meeting.arrived = 0;
  ++meeting.round;
}

Meeting &warp() { return warps[current->tid / 32]; }
int lane() { return current->tid % 32; }

void complete(std::vector<Copy> &group) {
  for (Copy &copy : group) {
    memset(copy.to, 0, copy.size);
    memcpy(copy.to, copy.from, copy.bytes);
  }
}

float toFloat(uint16_t bits, bool bf16) {
  if (bf16) {
    uint32_t wide = uint32_t(bits) << 16;
    float f;
    memcpy(&f, &wide, 4);
    return f;
  }
  _Float16 h;
  memcpy(&h, &bits, 2);
  return h;
}
float asFloat(uint64_t bits) {
  uint32_t low = bits;
  float f;
  memcpy(&f, &low, 4);
  return f;
}
uint64_t asBits(float f) {
  uint32_t bits;
  memcpy(&bits, &f, 4);
  return bits;
}

Barrier &barrierAt(const void *address) {
  static Barrier none;
  auto found = barriers.find(address);
  if (found == barriers.end())
    fail("an mbarrier is used that was not initialised");
  return found == barriers.end() ? none : found->second;
}

/// Lets copies of a fiber arrive; false when there are none.
bool letArrive(Fiber &fiber) {
  if (fiber.arriving.empty())
    return false;
  complete(fiber.arriving.front().first);
  fiber.arriving.front().second->arrive();
  fiber.arriving.pop_front();
  return true;
}

void start() {
  entry(arguments);
  current->done = true;
  swapcontext(&current->context, &scheduler);
}
} // namespace

extern "C" {

int rt_tid() { return current->tid; }
int rt_ctaid() { return ctaid; }

void rt_barrier() {
  meet(cta, 1, [] {});
}
void rt_warp_barrier() {
  meet(warp(), 2, [] {});
}

uint32_t rt_shuffle(uint32_t value, uint32_t argument, uint32_t kind, uint32_t own) { // own: bits of the lane that stay
  Meeting &w = warp();
  int me = lane();
  w.in[me][0] = value;
  w.in[me][1] = argument;
  w.in[me][2] = own;
  meet(w, 10 + kind, [&] {
    for (int i = 0; i < 32; ++i)
      w.out[i][0] = w.in[kind == 0 ? (i & w.in[i][2]) | (w.in[i][1] & 31 & ~w.in[i][2]) : (i ^ w.in[i][1]) & 31][0];
  });
  return w.out[me][0];
}

void rt_ldmatrix(const unsigned char *address, uint32_t *out, uint32_t count, uint32_t transposed) {
  Meeting &w = warp();
  int me = lane();
  w.in[me][0] = reinterpret_cast<uint64_t>(address);
  meet(w, 20 + count * 2 + transposed, [&] {
    for (uint32_t m = 0; m < count; ++m)
      for (int r = 0; r < 8; ++r) {
        auto *row = reinterpret_cast<unsigned char *>(w.in[8 * m + r][0]);
        if (row < attn_shared || row + 16 > attn_shared + sizeof(attn_shared) || (row - attn_shared) % 16)
          return fail("ldmatrix outside shared memory or misaligned");
        for (int c = 0; c < 8; ++c) {
          uint16_t v;
          memcpy(&v, row + 2 * c, 2);
          int to = transposed ? 4 * c + r / 2 : 4 * r + c / 2, half = transposed ? r % 2 : c % 2;
          uint64_t &word = w.out[to][m];
          word = half ? (word & 0xffff) | uint64_t(v) << 16 : (word & ~0xffffull) | v;
        }
      }
  });
  for (uint32_t m = 0; m < count; ++m)
    out[m] = w.out[me][m];
}

void rt_mma(const uint32_t *a, const uint32_t *b, const float *c, float *d, uint32_t bf16) {
  Meeting &w = warp();
  int me = lane();
  for (int i = 0; i < 4; ++i) {
    w.in[me][i] = a[i];
    w.in[me][6 + i] = asBits(c[i]);
  }
  w.in[me][4] = b[0], w.in[me][5] = b[1];
  meet(w, 30 + bf16, [&] {
    float A[16][16], B[16][8];
    for (int l = 0; l < 32; ++l) {
      for (int i = 0; i < 8; ++i)
        A[l / 4 + (i / 2 % 2) * 8][l % 4 * 2 + i % 2 + i / 4 * 8] = toFloat(w.in[l][i / 2] >> (i % 2 * 16), bf16);
      for (int i = 0; i < 4; ++i)
        B[l % 4 * 2 + i % 2 + i / 2 * 8][l / 4] = toFloat(w.in[l][4 + i / 2] >> (i % 2 * 16), bf16);
    }
    for (int l = 0; l < 32; ++l)
      for (int i = 0; i < 4; ++i) {
        float sum = asFloat(w.in[l][6 + i]);
        for (int k = 0; k < 16; ++k)
          sum += A[l / 4 + i / 2 * 8][k] * B[k][l % 4 * 2 + i % 2];
        w.out[l][i] = asBits(sum);
      }
  });
  for (int i = 0; i < 4; ++i)
    d[i] = asFloat(w.out[me][i]);
}

static void copyLater(unsigned char *to, const unsigned char *from, uint32_t bytes, int size) {
  if (to < attn_shared || to + size > attn_shared + sizeof(attn_shared) || (to - attn_shared) % size || bytes > uint32_t(size) ||
      (bytes && reinterpret_cast<uint64_t>(from) % size))
    return fail("cp.async outside shared memory or misaligned");
  memset(to, 0xff, size); // NaN until it has arrived
  current->issued.push_back({to, from, static_cast<int>(bytes), size});
}
void rt_cp_async(unsigned char *to, const unsigned char *from, uint32_t bytes) { copyLater(to, from, bytes, 16); }
void rt_cp_async8(unsigned char *to, const unsigned char *from, uint32_t bytes) { copyLater(to, from, bytes, 8); }
void rt_commit() {
  current->groups.push_back(current->issued);
  current->issued.clear();
}
void rt_wait_group(uint32_t inFlight) {
  while (current->groups.size() > inFlight) {
    complete(current->groups.front());
    current->groups.pop_front();
  }
}

void rt_barrier_init(const void *address, uint32_t count) {
  Barrier &barrier = barriers[address];
  barrier = Barrier();
  barrier.meeting.size = count;
}
void rt_arrive(const void *address) { barrierAt(address).arrive(); }
void rt_try_wait(const void *address, uint32_t parity) {
  Barrier &barrier = barrierAt(address);
  while ((barrier.meeting.round & 1) == parity && !failure)
    wait(barrier.meeting);
}
void rt_arrive_later(const void *address) {
  current->arriving.push_back({current->issued, &barrierAt(address)});
  current->issued.clear();
}
uint32_t rt_vote_all(uint32_t value) {
  Meeting &w = warp();
  int me = lane();
  w.in[me][0] = value;
  meet(w, 40, [&] {
    bool all = true;
    for (auto &in : w.in)
      all &= in[0] & 1;
    for (auto &out : w.out)
      out[0] = all;
  });
  return w.out[me][0];
}

/// Two e4m3 to f16: the value, exactly.
uint32_t rt_e4m3(uint32_t pair) {
  auto one = [](uint32_t b) -> uint32_t {
    float f = (b & 0x78) ? ldexpf(8 + (b & 7), int(b >> 3 & 15) - 10) : ldexpf(b & 7, -9);
    if ((b & 0x7f) == 0x7f)
      return 0x7fff;
    _Float16 h = b & 0x80 ? -f : f;
    uint16_t bits;
    memcpy(&bits, &h, 2);
    return bits;
  };
  return one(pair & 0xff) | one(pair >> 8 & 0xff) << 16;
}
float rt_ex2(float x) { return exp2f(x); }
float rt_lg2(float x) { return log2f(x); }
float rt_sin(float x) { return sinf(x); }
float rt_cos(float x) { return cosf(x); }
uint32_t rt_pack(float high, float low, uint32_t bf16) {
  auto bits = [&](float f) -> uint32_t {
    if (!bf16) {
      _Float16 h = f;
      uint16_t b;
      memcpy(&b, &h, 2);
      return b;
    }
    uint32_t b = asBits(f);
    if (f != f)
      return 0x7fff;
    return (b + 0x7fff + (b >> 16 & 1)) >> 16;
  };
  return bits(high) << 16 | bits(low);
}

/// Runs `ctas` CTAs one after another; a message, or null.
const char *emulate(void (*kernel)(uint64_t *), uint64_t *args, int ctas, int threads, int smem, int seed) {
  entry = kernel;
  arguments = args;
  failure = nullptr;
  std::mt19937 random(seed);
  for (ctaid = 0; ctaid < ctas && !failure; ++ctaid) {
    memset(attn_shared, 0xff, sizeof(attn_shared));
    fibers = std::vector<Fiber>(threads);
    warps = std::vector<Meeting>(threads / 32);
    for (Meeting &w : warps)
      w.size = 32;
    barriers.clear();
    cta = Meeting();
    cta.size = threads;
    for (int t = 0; t < threads; ++t) {
      Fiber &f = fibers[t];
      f.tid = t;
      f.stack.resize(1024 * 1024);
      getcontext(&f.context);
      f.context.uc_stack.ss_sp = f.stack.data();
      f.context.uc_stack.ss_size = f.stack.size();
      f.context.uc_link = nullptr;
      makecontext(&f.context, start, 0);
    }
    std::vector<int> order(threads / 32);
    for (size_t i = 0; i < order.size(); ++i)
      order[i] = i;
    // One warp runs as far as it can before another one is chosen.
    for (bool more = true; more && !failure;) {
      more = false;
      bool moved = false;
      std::shuffle(order.begin(), order.end(), random);
      for (int w : order)
        for (bool again = true; again && !failure;) {
          again = false;
          for (int l = 0; l < 32; ++l) {
            Fiber &f = fibers[w * 32 + l];
            if (f.done || (f.waiting && f.waiting->round == f.round))
              continue;
            f.waiting = nullptr;
            current = &f;
            swapcontext(&scheduler, &f.context);
            again = moved = true;
          }
        }
      for (Fiber &f : fibers)
        more |= !f.done;
      // Nobody moves without copies that are under way: those of some thread arrive.
      for (size_t i = 0, first = random() % fibers.size(); i < fibers.size() && !moved; ++i)
        moved = letArrive(fibers[(first + i) % fibers.size()]);
      if (more && !moved)
        fail("deadlock: threads wait for others that never come");
    }
    for (int i = smem; i < static_cast<int>(sizeof(attn_shared)) && !failure; ++i)
      if (attn_shared[i] != 0xff)
        fail("shared memory written beyond its size");
  }
  return failure;
}
}
