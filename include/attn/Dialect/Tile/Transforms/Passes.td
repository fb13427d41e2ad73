//===- Passes.td - passes on tile kernels ------------------*- tablegen -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TILE_PASSES
#define ATTN_TILE_PASSES

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

def TileAssignLayoutsPass : Pass<"tile-assign-layouts", "::mlir::tile::KernelOp"> {
  let summary = "gives every register and shared-memory tile a layout";
  let description = [{
    Before: a kernel of level L without layouts, with a `config`. After: the
    same kernel, every `!tile.reg` and `!tile.smem` with a layout.

    Anchors are the dots. Accumulators have `#tile.mma<warps = [w, 1]>`, the
    warps side by side along the rows, or `#tile.mma<warps = [groups, w, 1]>`
    when the tiles have a leading dimension of key groups. A operands in
    registers share the accumulator's registers (`#tile.operand<a>` for 16-bit
    types), B operands in registers are `#tile.operand<b>` ([k, n]) or
    `#tile.operand<bt>` ([n, k], `transpose_b`). The rows of a `tile.transform`
    have `#tile.blocked`, as wide as the places where its body cuts columns
    allow. Everything else follows by data flow, rows as `#tile.slice`. Shared memory is swizzled by the widest
    of 128, 64 and 32 bytes that divides a row.
    Where two uses disagree, a `tile.convert_layout` is made (splats and
    coordinate maps are duplicated instead).
  }];
  let options = [
    Option<"forbidLoopConversions", "forbid-loop-conversions", "bool", "false",
           "a conversion inside a loop over keys is an error">
  ];
  let statistics = [
    Statistic<"numConversions", "num-conversions", "convert_layout ops made">
  ];
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

def TileTransformStagesPass : Pass<"tile-transform-stages", "::mlir::tile::KernelOp"> {
  let summary = "what hooks make of Q, K and V is computed once, in shared memory";
  let description = [{
    Before: level L without layouts, with a `config`. A register operand B of a
    product that follows, by ops that keep its rows apart, from one stage of
    shared memory that nothing else reads becomes a `tile.transform` of that
    stage, in front of the product; the product reads shared memory:
    ```
    %r = tile.local_load %k : !stage -> !r
    %x = tile.map arith.extf(%r : !r) -> !b
    %s = tile.dot %q, %x transpose_b : (!q, !b) -> !s
    ```
    becomes
    ```
    %h = tile.transform %k rows 16 : !stage -> !hooked {
    ^bb0(%r: !r16, %first: index):
      %x = tile.map arith.extf(%r : !r16) -> !b16
      tile.yield %x : !b16
    }
    %s = tile.dot %q, %h transpose_b : (!q, !hooked) -> !s
    ```
    Coordinate tiles that the ops read are computed again for the rows of a
    step. A stage that is read, computed and stored back is transformed in
    place likewise. Other operands stay in registers.
  }];
  let statistics = [Statistic<"numStages", "num-stages", "stages transformed in shared memory">];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def TileMultibufferPass : Pass<"tile-multibuffer", "::mlir::tile::KernelOp"> {
  let summary = "loads to shared memory inside a loop go through pipelines of `stages` slots";
  let description = [{
    Before: level L. After: level P. Each `tile.load` to shared memory in the
    body of an `scf.for` becomes producer_acquire, load_async, consumer_wait
    (before its first use) and consumer_release (after its last).

    With `prefetch` (machines whose warps load for themselves) the loads run
    `stages - 1` steps ahead: guarded loads before the loop, and one in each
    step right after the wait for its own tile. consumer_wait then carries
    `tile.in_flight`, the number of younger loads that may still be under way.
    Without it every step loads its own tile; roles move the loads ahead later.
    A plain load to shared memory before the loop moves behind the first loads.
  }];
  let options = [
    Option<"prefetch", "prefetch", "bool", "true", "load ahead within the loop">
  ];
  let statistics = [
    Statistic<"numPipelines", "num-pipelines", "loads turned into pipelines">
  ];
}

def TileAllocateSharedPass : Pass<"tile-allocate-shared", "::mlir::tile::KernelOp"> {
  let summary = "places of all tiles in shared memory";
  let description = [{
    Gives each op that owns shared memory (pipelines, loads to shared memory,
    transforms with a result of another type, reductions across warps, layout
    conversions) a byte offset,
    `tile.shared_offset`, and the kernel the total, `tile.shared_bytes`.
    Tiles with a swizzle start at multiples of 1024. Barriers of pipelines that
    need them (`config.load = tma` or roles) are 16 bytes a stage at
    `tile.barrier_offset`; words of a pipeline, 4 bytes each, at
    `tile.words_offset`. Results of transforms that are never needed at once
    share their place. Scratch memory that only one op uses at a time is
    shared by all such ops, and lies in the pipelines when these are idle then
    (level P, outside their loops). The total is checked against the target.
  }];
  let options = [
    Option<"limit", "limit", "int64_t", "0", "bytes a CTA may use (0: the target's limit)">
  ];
}

//===----------------------------------------------------------------------===//
// Asynchrony
//===----------------------------------------------------------------------===//

def TileDeferSumsPass : Pass<"tile-defer-sums", "::mlir::tile::KernelOp"> {
  let summary = "row sums are taken over lanes behind the key loop";
  let description = [{
    Before: a kernel with layouts, level L. A sum that a loop carries as
    `l = a l + sum(P)`, with an initial value of zero, becomes one partial sum a
    lane (`scope thread` in the loop, `scope lanes` behind it). Other sums stay.
  }];
  let statistics = [Statistic<"numSums", "num-sums", "sums deferred">];
}

def TileMergeFactorsPass : Pass<"tile-merge-factors", "::mlir::tile::KernelOp"> {
  let summary = "the softmax's own factors join those of a logits hook";
  let description = [{
    Before: level L. The bodies of maps are scalar arithmetic; a product marked
    `reassoc` there is one that attn-to-tile put in (the softmax's scale, and
    log2 e). It merges with constant or uniform factors beside it and moves out
    of sums; the author's own products are not reordered among themselves. A
    division marked `arcp` by what is the same for all elements becomes a
    product. Rounds as often or less often. In scalars, `scale` and `log2e` own:
    ```
    y = tanh((x * scale) * 0.02) * 50.0 * log2e    // tanh(x * (scale * 0.02)) * (50.0 * log2e)
    y = fma(slope, d, x * scale) * log2e           // fma(slope * (1 / scale), d, x) * (scale * log2e)
    ```
  }];
  let statistics = [Statistic<"numMoves", "num-moves", "factors merged, moved or inverted">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def TileFoldScalePass : Pass<"tile-fold-scale", "::mlir::tile::KernelOp"> {
  let summary = "the logits' last factor moves into the exponent";
  let description = [{
    Before: level L. A loop whose logits end in a product with a positive
    constant, and use it only for the carried maximum and the exponentials, as
    attn-to-tile writes it, keeps its maximum in units of the logits without
    that factor: `exp2(c x - c m)` is one fma where a product and a difference
    stood. Rounds once instead of twice. Other loops stay. In scalars:
    ```
    y = x * c;  m' = max(m, y);  p = exp2(y - m')
    // becomes
    m' = max(m, x);  p = exp2(fma(x, c, -(m' * c)))
    ```
  }];
  let statistics = [Statistic<"numLoops", "num-loops", "loops with a factor moved">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def TileReverseKeysPass : Pass<"tile-reverse-keys", "::mlir::tile::KernelOp"> {
  let summary = "key loops run from the last block to the first";
  let description = [{
    Before: level L; the masks of a loop over keys drop all that lies outside
    of its bounds. After: the block with the ragged end and the diagonal is the
    first, and a range without keys visits one block, wholly masked, so that
    every item has the same steps (`tile.at_least_once`). Sums are taken in
    another order.
    ```
    scf.for %j = %lo to %hi step %c128 { ... %j ... }
    // becomes, with %last the first row of the last block
    scf.for %i = %lo to %end step %c128 { %j = %lo + %last - %i ... }
    ```
  }];
  let statistics = [Statistic<"numLoops", "num-loops", "loops reversed">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def TileSkewDotsPass : Pass<"tile-skew-dots", "::mlir::tile::KernelOp"> {
  let summary = "P V of a block runs beside Q K of the next";
  let description = [{
    Before: level L; each loop with products has two of them, the second one
    the carried accumulator. After: the first block's Q K and softmax stand
    before the loop (under lo < hi, unless `tile.at_least_once`), each step issues Q K of its block and P V
    of the block before, and the last P V follows the loop. A loop of another
    form is an error.
  }];
  let statistics = [Statistic<"numLoops", "num-loops", "loops skewed">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def TilePeelMasksPass : Pass<"tile-peel-masks", "::mlir::tile::KernelOp"> {
  let summary = "key loops are cut at the interval in which nothing is masked";
  let description = [{
    A loop with one mask, whose interval is about the loop's induction variable
    or a value that runs against it, becomes three loops that hand on their
    values; the middle one, over the blocks inside of the interval whose loads
    are of rows that exist, has no mask and is marked `tile.whole_blocks`; there
    the maximum of a product's row is not guarded against rows without keys.
    Other masks stay (R6). With `peel = false` in the kernel's config no loop is
    cut: its masks are marked `tile.skips_whole`, and the code branches around
    them in blocks inside of their interval.
  }];
  let statistics = [Statistic<"numLoops", "num-loops", "loops cut">,
                    Statistic<"numBranches", "num-branches", "masks with a branch around them">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def TileWarpSpecializePass : Pass<"tile-warp-specialize", "::mlir::tile::KernelOp"> {
  let summary = "producer warps load, groups of warps compute";
  let description = [{
    Before: level L with layouts and `consumers` in the config, one for_each;
    K and V are read from shared memory; rank 1 and 2 tiles only. After: level S.
    Loads of one view share a pipeline (of `stages` when in a loop, else of two
    where they fit the target); paged views of a loop have a producer each. The
    consumers have equal shares of the rows (`warps` / `consumers` warps each);
    products are asynchronous, awaited before the first use of their result,
    slots are released behind the last product that reads them. Rows of V behind
    the end of its view are zeroed, except in loops over whole blocks. Stages of
    keys that a `tile.transform` rewrites pass through one more role of four
    warps, on pipelines chained to the producer's; each consumer transforms its
    rows of the query tile itself. With
    `q_in_registers` the query tile is read into fragments once an item.
    What is not of this form is an error that names the op.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def TileStoreRolePass : Pass<"tile-store-role", "::mlir::tile::KernelOp"> {
  let summary = "whole output tiles leave through the query's stage";
  let description = [{
    Before: level S, items in for_each. When the consumers store a tile of the
    query tile's type under branches on scalars, and query tiles have two
    stages or more, a role of one warp is added: the consumers write whole
    tiles to the stage that held the query and hand it on by a chained
    pipeline, the role copies it to memory and frees it. Tiles with fewer rows
    are stored as before. Other kernels stay as they are.
    ```
    tile.store %o, %view[%row] : !tile, !view
    // becomes in the consumers
    scf.if %whole { tile.local_store %o, %slot } else { tile.store %o, %view[%row] }
    tile.commit %chained
    // and in the role
    %slot = tile.consumer_wait %chained
    scf.if %whole { tile.store_async %slot, %view[%c0] }
    tile.consumer_release %chained
    ```
  }];
  let statistics = [Statistic<"numStores", "num-stores", "stores that got a role">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def TileStreamItemsPass : Pass<"tile-stream-items", "::mlir::tile::KernelOp"> {
  let summary = "the items of a CTA become one stream of key blocks";
  let description = [{
    Before: level S, one for_each in the producer and one in the consumers; the
    consumers' items have a product before their key loops and one behind them
    (tile-reverse-keys, tile-skew-dots), and wait for one query tile. After: the
    consumers loop over items themselves. The step between two items issues the
    next one's first product beside the last one of the item before; the fields
    that they use travel as words with the query tile. An item with 0 rows ends
    the stream. Needs two stages of query tiles to look ahead, works with one.
    Lookups that tile-warp-specialize marked become those of the role that loads
    the query tile; their results are words too, which roles that load keys read
    as observers where the query tiles have two stages or more.
    ```
    tile.for_each (...) { first product; key loops; last product; results }
    // becomes in the consumers
    first product of the first item
    scf.while { key loops; wait for the next item; condition: it has rows }
    do { the next item's first product beside the last one; results }
    last product; results
    ```
  }];
  let statistics = [
    Statistic<"numStreams", "num-streams", "kernels whose items became a stream">,
    Statistic<"numWords", "num-words", "words of an item: fields and results of lookups">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def TileTakeTurnsPass : Pass<"tile-take-turns", "::mlir::tile::KernelOp"> {
  let summary = "consumers issue their products one group after the other";
  let description = [{
    Before: level S, a config with `turns`. After: where a step issues Q K of a
    block and P V of the one before, the first product takes the group's turn
    and the second passes it to the next group, so that one group's softmax
    stands beside the other's products (FlashAttention-3, section 3.1). Products
    that stand alone, at the ends of a list, do not wait. All groups of a role
    run the same steps, as their pipelines ask for, so that turns come round.
    ```
    %s = tile.dot_async %q, %k transpose_b {tile.takes_turn}
    %o = tile.dot_async %p, %v acc %o0 {tile.passes_turn}
    ```
  }];
  let statistics = [Statistic<"numTurns", "num-turns", "places where a turn is taken">];
}

def TileHoldWaitsPass : Pass<"tile-hold-waits", "::mlir::tile::KernelOp"> {
  let summary = "waits for products stay behind the work that overlaps with them";
  let description = [{
    A wait for the youngest product that has a sum of a thread's terms in front
    of it (the weights of the next block) is held behind the first of these.
    ```
    %w = tile.reduce addf %p dim 1 scope thread : !s -> !part
    %o = tile.await %pending : !pending -> !acc
    // becomes
    %o = tile.await %pending after %w terms 1 : !part, : !pending -> !acc
    ```
  }];
  let statistics = [Statistic<"numWaits", "num-waits", "waits that are held">];
}

def TileRescaleRarelyPass : Pass<"tile-rescale-rarely", "::mlir::tile::KernelOp"> {
  let summary = "the accumulator is scaled only when the row maximum grows by more than 2^8";
  let description = [{
    A step keeps the row maximum of the steps before unless the block's is more
    than 8 above it, in exponents of two: weights are at most 2^8 then. The
    factor of a row that keeps its maximum is exactly one, and a warp all of
    whose factors are one leaves the product with the accumulator out.
    ```
    %m1 = tile.reduce maximumf %s dim 1 init %m0
    %f = tile.map (%m0, %m1) { exp2(c (m0 - m1)) }
    %o1 = tile.map arith.mulf(%o0, %f[0])
    // becomes
    %m = tile.reduce maximumf %s dim 1 init %m0
    %m1 = tile.map (%m0, %m) { c (m0 - m) >= -8 ? m0 : m }
    %f = tile.map (%m0, %m1) { m0 == m1 ? 1 : exp2(c (m0 - m1)) }
    %o1 = tile.map arith.mulf(%o0, %f[0]) {tile.skips_ones}
    ```
  }];
  let statistics = [Statistic<"numSteps", "num-steps", "steps that keep their maximum">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

#endif
