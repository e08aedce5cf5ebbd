#pragma once
// The forest as the search reads it: trees cut into pieces of at most 64 leaves, a bit each; for every cell at which
// a box may begin or end, the leaves still reachable; leaf margins in integers, so that sums of bounds are exact.

#include "units.hpp"

#include <limits>

namespace cfmaps
{
using Leaves = uint64_t;  // a bit for each leaf of a piece
constexpr uint32_t piece_leaves = std::numeric_limits<Leaves>::digits;
constexpr uint8_t no_inner = 255;

/// A test inside a piece and the leaves on its sides.
struct Inner
{
    Leaves left_leaves, right_leaves;
    uint32_t test;
    uint8_t left, right;  // inner nodes of the piece, or no_inner below which is one leaf
};

class Forest
{
public:
    Forest(Lattice lattice, Trees trees);

    Lattice lattice;
    Trees trees;
    Lanes lanes;
    int32_t slack = 0;  // what all rounding together can add to a sum of one lane
    size_t n_pieces = 0;
    std::vector<uint32_t> roots;     // pieces of the trees that have more than one leaf
    std::vector<int32_t> constants;  // per lane, from the trees that have one leaf
    bool has_links = false;
    bool has_rows = false;  // a forest too large for them asks its pieces instead

    // Per piece and leaf. With one lane the leaves are sorted, so that the highest bit of a mask finds the largest
    // value and the lowest bit the smallest: most[] and least[] hold it even where a leaf stands for a piece below.
    std::vector<int32_t> most, least;  // n_lanes per leaf
    std::vector<int32_t> link;         // the piece below, or -1
    std::vector<Leaves> all_leaves;    // per piece
    std::vector<Inner> inner;          // piece_leaves - 1 per piece, the root first

    const Inner* inner_of(size_t piece) const { return inner.data() + piece * (piece_leaves - 1); }
    size_t leaf_of(size_t piece, uint32_t leaf) const { return piece * piece_leaves + leaf; }

    /// Leaves reachable when the axis ends at, or begins at, a cell: a mask for every piece.
    const Leaves* row_up_to(size_t axis, uint32_t cell) const { return row(lattice.first_test[axis] + cell, false); }
    const Leaves* row_from(size_t axis, uint32_t cell) const { return row(lattice.first_test[axis] + cell - 1, true); }
    const Leaves* row_of_category(size_t axis, uint32_t cell) const
    {
        return rows_.data() + (category_row_[axis] + cell) * n_pieces;
    }

    /// Leaves of one piece that the box reaches (for sets of categories: or seems to).
    Leaves reached(uint32_t piece, ConstBox box) const;

private:
    friend class ForestBuilder;
    const Leaves* row(uint32_t test, bool right) const { return rows_.data() + (2 * size_t{test} + right) * n_pieces; }

    std::vector<Leaves> rows_;
    std::vector<size_t> category_row_;
};
}  // namespace cfmaps
