//===- RoleRegistersTest.cpp - registers of the roles of a kernel ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Target/RoleRegisters.h"
#include "gtest/gtest.h"

using namespace attn;

static RoleWork gathers(int64_t consumers) {
  RoleWork work;
  work.consumers = consumers;
  work.pages = work.gather = true;
  work.columns = 128;
  return work;
}

TEST(RoleRegisters, aWarpgroupGathersWhereTheLaunchHasTheRegisters) {
  RoleRegisters two = getRoleRegisters(gathers(2));
  EXPECT_EQ(two.gatherWarps, 4);
  EXPECT_EQ(two.consumer, 232);
  EXPECT_EQ(two.producer, 24);
  EXPECT_EQ(getRoleRegisters(gathers(1)).gatherWarps, 4);
  EXPECT_EQ(getRoleRegisters(gathers(3)).gatherWarps, 2);

  RoleWork work = gathers(2);
  work.hooks = true;
  EXPECT_EQ(getRoleRegisters(work).gatherWarps, 2);
  work = gathers(2);
  work.range = 41;
  EXPECT_EQ(getRoleRegisters(work).gatherWarps, 2);
  EXPECT_EQ(getRoleRegisters(work).producer, 40);
  work = gathers(2);
  work.columns = 193;
  EXPECT_EQ(getRoleRegisters(work).gatherWarps, 2);
  EXPECT_EQ(getRoleRegisters(work).consumer, 232);
}

/// What setmaxnreg asks for in all must be there, else the kernel waits for ever.
TEST(RoleRegisters, neverMoreThanTheLaunchAllots) {
  for (int64_t consumers : {1, 2, 3})
    for (int bits = 0; bits < 8; ++bits)
      for (int64_t range : {0, 41, 61})
        for (int64_t columns : {64, 256}) {
          RoleWork work;
          work.consumers = consumers;
          work.pages = bits & 1;
          work.gather = bits & 2;
          work.hooks = bits & 4;
          work.range = range;
          work.columns = columns;
          RoleRegisters registers = getRoleRegisters(work);
          int64_t producers = work.gather && registers.gatherWarps == 4 ? 2 : 1;
          int64_t warpgroups = consumers + producers + work.hooks;
          int64_t launch = 65536 / 128 / warpgroups / 8 * 8;
          EXPECT_LE(consumers * registers.consumer + producers * registers.producer + registers.transformer,
                    (launch > 248 ? 248 : launch) * warpgroups);
          for (int64_t count : {registers.consumer, registers.producer}) {
            EXPECT_EQ(count % 8, 0);
            EXPECT_GE(count, 24);
          }
        }
}
